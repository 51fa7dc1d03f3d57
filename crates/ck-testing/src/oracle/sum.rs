//! A sum that remembers what an error bound needs.

/// A sum in `f64`, with the number and the total magnitude of its terms.
///
/// [`crate::bounds::sequential_sum`] turns it into the bound of an `f32` sum of the same terms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// The sum of the terms.
    pub value: f64,
    /// The sum of the terms' magnitudes.
    pub magnitude: f64,
    /// How many terms there are.
    pub terms: usize,
}

impl Sum {
    /// The sum of `terms`, added in order.
    ///
    /// ```
    /// let sum = ck_testing::oracle::Sum::of([3.0, -1.0]);
    /// assert_eq!((sum.value, sum.magnitude, sum.terms), (2.0, 4.0, 2));
    /// ```
    #[must_use]
    pub fn of(terms: impl IntoIterator<Item = f64>) -> Self {
        terms.into_iter().fold(Self::default(), Self::plus)
    }

    /// The sum with one more term.
    #[must_use]
    pub fn plus(self, term: f64) -> Self {
        Self {
            value: self.value + term,
            magnitude: self.magnitude + term.abs(),
            terms: self.terms + 1,
        }
    }

    /// Whether an `f32` sum of these terms is exact in any order.
    ///
    /// `quantum` is a power of two of which every term is a whole multiple. Every partial sum then is one as
    /// well, and is exact when it needs at most 24 bits, that is when the magnitudes add up to at most
    /// `2^24 * quantum`. A test that demands equal bits of the oracle asserts this first.
    #[must_use]
    pub fn is_exact_in_f32(&self, quantum: f64) -> bool {
        self.magnitude <= quantum * 16_777_216.0
    }
}
