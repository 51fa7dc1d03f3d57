//! Rotary position embedding.
//!
//! Pair i of a head is rotated by the angle `position * base^(-2i / width)`. What lies beyond the rotary width
//! stays as it is.

/// Which two elements make pair i of a head with rotary width `width`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pairing {
    /// Elements i and i + width / 2, as Qwen2 and most others.
    SplitHalf,
    /// Elements 2i and 2i + 1, as Llama files in GGUF.
    Interleaved,
}

impl Pairing {
    /// Both pairings.
    pub const ALL: [Self; 2] = [Self::SplitHalf, Self::Interleaved];
}

/// A rotation by position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// Which elements make a pair.
    pub pairing: Pairing,
    /// How many elements of a head take part, from its first on; even.
    pub width: usize,
    /// The base of the angles, 10000 in the first models.
    pub base: f64,
}

impl Rope {
    /// The two elements of pair `pair`, first and second coordinate.
    #[must_use]
    pub fn elements(&self, pair: usize) -> (usize, usize) {
        match self.pairing {
            Pairing::SplitHalf => (pair, pair + self.width / 2),
            Pairing::Interleaved => (2 * pair, 2 * pair + 1),
        }
    }

    /// The angle of pair `pair` at `position`, in radians.
    ///
    /// ```
    /// use ck_testing::oracle::{Pairing, Rope};
    /// let rope = Rope { pairing: Pairing::SplitHalf, width: 64, base: 1e6 };
    /// assert!((rope.angle(1, 1) - 0.649_381_6).abs() < 1e-7);
    /// ```
    #[must_use]
    pub fn angle(&self, position: usize, pair: usize) -> f64 {
        position as f64 * self.base.powf(-2.0 * pair as f64 / self.width as f64)
    }

    /// Rotates one head in place.
    ///
    /// # Panics
    ///
    /// If the rotary width is odd or larger than the head.
    pub fn rotate_head(&self, position: usize, head: &mut [f64]) {
        assert_eq!(self.width % 2, 0, "a rotary width is even");
        assert!(self.width <= head.len(), "width {} of a head of {}", self.width, head.len());
        for pair in 0..self.width / 2 {
            let (first, second) = self.elements(pair);
            let (sin, cos) = self.angle(position, pair).sin_cos();
            let (a, b) = (head[first], head[second]);
            head[first] = a * cos - b * sin;
            head[second] = a * sin + b * cos;
        }
    }

    /// Rotates every head of a row in place.
    ///
    /// # Panics
    ///
    /// As [`Rope::rotate_head`]; also if the row is no whole number of heads.
    pub fn rotate_row(&self, position: usize, head_dim: usize, row: &mut [f64]) {
        assert_eq!(row.len() % head_dim, 0, "{} elements of heads of {head_dim}", row.len());
        for head in row.chunks_exact_mut(head_dim) {
            self.rotate_head(position, head);
        }
    }
}
