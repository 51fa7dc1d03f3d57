//! Comparisons that say where, by how much and how often two results differ.
//!
//! Each has a `check_` form that returns the report, for tests that go through a table and want all failing
//! cases ([`Failures`] collects them), and an `assert_` form that panics with it.

use std::fmt::{Display, Write as _};

/// Differences that a report spells out; the rest is only counted.
const SHOWN: usize = 8;

/// Compares two slices bit by bit: 0.0 differs from -0.0, and a NaN equals only itself.
///
/// # Errors
///
/// A report with index, values and bits of the first differences and the number of all.
pub fn check_bits(got: &[f32], expected: &[f32]) -> Result<(), String> {
    check_lengths(got.len(), expected.len())?;
    let differs = |&i: &usize| got[i].to_bits() != expected[i].to_bits();
    report((0..got.len()).filter(differs), got.len(), |i| {
        let (got, expected) = (got[i], expected[i]);
        let (got_bits, expected_bits) = (got.to_bits(), expected.to_bits());
        format!("got {got:e} ({got_bits:08x}), expected {expected:e} ({expected_bits:08x})")
    })
}

/// [`check_bits`] that panics.
///
/// # Panics
///
/// If a bit differs.
#[track_caller]
pub fn assert_bits_eq(context: &str, got: &[f32], expected: &[f32]) {
    fail(context, check_bits(got, expected));
}

/// Asserts that an operation gives the bits that it gave when they were pinned, on every level.
///
/// The oracle has bounds, within which an order of operations can change unseen; these numbers show it. `pinned` is a
/// [`digest`], which the panic names if it is another one.
///
/// # Panics
///
/// If a level's result has another digest, or there is no level.
#[track_caller]
pub fn assert_pinned<L: Display>(
    context: &str,
    levels: impl IntoIterator<Item = L>,
    pinned: u64,
    operation: impl Fn(L) -> Vec<f32>,
) {
    let mut some = false;
    for level in levels {
        some = true;
        let name = level.to_string();
        let digest = digest(&operation(level));
        assert!(
            digest == pinned,
            "{context}: {name} gives bits of the digest {digest:#018x}, and {pinned:#018x} is pinned. If other bits are \
             meant, nobody can repeat a result of the last version: a change for the changelog"
        );
    }
    assert!(some, "{context}: no level");
}

/// 64 bits that stand for a sequence of numbers: FNV-1a over their bytes, the least significant first.
#[must_use]
pub fn digest(values: &[f32]) -> u64 {
    let bytes = values.iter().flat_map(|value| value.to_bits().to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Compares a result with the oracle's: element i may be off by `bounds[i]`.
///
/// A NaN on any side, and a bound that is negative or not finite, is a difference: nothing was shown then.
///
/// # Errors
///
/// A report with index, values, error and bound of the first differences and the number of all.
pub fn check_within(got: &[f32], expected: &[f64], bounds: &[f64]) -> Result<(), String> {
    check_lengths(got.len(), expected.len())?;
    check_lengths(bounds.len(), expected.len())?;
    let error = |i: usize| (f64::from(got[i]) - expected[i]).abs();
    let holds = |i: usize| bounds[i].is_finite() && error(i) <= bounds[i];
    report((0..got.len()).filter(|&i| !holds(i)), got.len(), |i| {
        let (got, expected, bound) = (got[i], expected[i], bounds[i]);
        format!("got {got:e}, expected {expected:e}, off by {:e}, bound {bound:e}", error(i))
    })
}

/// [`check_within`] that panics.
///
/// # Panics
///
/// If an element is off by more than its bound.
#[track_caller]
pub fn assert_within(context: &str, got: &[f32], expected: &[f64], bounds: &[f64]) {
    fail(context, check_within(got, expected, bounds));
}

/// The largest relative error of a recording, and where it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelativeError {
    /// The error; infinite if something is not finite or differs from a row of zeros.
    pub value: f64,
    /// The row (token) it is in.
    pub row: usize,
    /// The element of the row.
    pub column: usize,
}

/// The metric of the recorded layers: the largest over rows of `max_i |got - recorded| / max_i |recorded|`
/// within one row.
///
/// One divisor per row, so that a row of huge values hides no error of another. A row recorded as all zeros
/// must be met exactly. NaN or infinity on any side is an infinite error.
///
/// ```
/// use ck_testing::compare::max_rel_err;
/// let recorded = [1000.0, 2000.0, 1.0, 2.0];
/// let error = max_rel_err(&[1000.0f32, 2000.0, 1.0, 2.5], &recorded, 2);
/// assert_eq!((error.value, error.row, error.column), (0.25, 1, 1));
/// ```
///
/// # Panics
///
/// If there is nothing to compare, the lengths differ, or they are no whole number of rows.
#[must_use]
pub fn max_rel_err<T: Copy + Into<f64>>(
    got: &[T],
    recorded: &[f32],
    width: usize,
) -> RelativeError {
    worst_of_rows(got, recorded, width, |row| {
        (widest(recorded[row * width..][..width].iter().map(|&x| f64::from(x))), |_| 0.0)
    })
}

/// The metric for a block's output, which holds the residual: the divisor of a row is
/// `max_i |recorded output - recorded input|`, and one ulp of the recorded output is first taken off each difference.
///
/// The residual can be a thousand times what the block adds to it. The last bit of the sum is then large
/// beside the block's part, which is all that is judged here.
///
/// # Panics
///
/// As [`max_rel_err`]; also if `input` has another length.
#[must_use]
pub fn max_rel_err_of_output<T: Copy + Into<f64>>(
    got: &[T],
    recorded: &[f32],
    input: &[f32],
    width: usize,
) -> RelativeError {
    assert_eq!(input.len(), recorded.len(), "elements of the recorded input");
    worst_of_rows(got, recorded, width, |row| {
        let range = row * width..(row + 1) * width;
        let added = recorded[range.clone()]
            .iter()
            .zip(&input[range])
            .map(|(&output, &input)| f64::from(output) - f64::from(input));
        (widest(added), |recorded| ulp(recorded))
    })
}

/// The distance from `|x|` to the next larger `f32`; of the largest one, to the next smaller.
///
/// ```
/// assert_eq!(ck_testing::compare::ulp(-1.5), f64::from(f32::EPSILON));
/// ```
///
/// # Panics
///
/// If `x` is not finite.
#[must_use]
pub fn ulp(x: f32) -> f64 {
    assert!(x.is_finite(), "{x} has no ulp");
    let magnitude = x.abs();
    let next = magnitude.next_up();
    if next.is_finite() {
        f64::from(next) - f64::from(magnitude)
    } else {
        f64::from(magnitude) - f64::from(magnitude.next_down())
    }
}

/// The failing cases of a table, so that a test reports all of them and not the first.
///
/// ```
/// use ck_testing::compare::{Failures, check_bits};
/// let mut failures = Failures::default();
/// for n in [0, 1, 7] {
///     failures.add(format_args!("n = {n}"), check_bits(&vec![1.0; n], &vec![1.0; n]));
/// }
/// failures.assert_none();
/// ```
#[derive(Debug, Default)]
#[must_use = "failures count only when they are asserted to be none"]
pub struct Failures {
    cases: usize,
    failed: Vec<String>,
}

impl Failures {
    /// Counts a case, and keeps its report if it failed.
    pub fn add(&mut self, context: impl Display, result: Result<(), String>) {
        self.cases += 1;
        if let Err(report) = result {
            self.failed.push(format!("{context}: {report}"));
        }
    }

    /// Ends the table.
    ///
    /// # Panics
    ///
    /// If a case failed, or there was no case at all.
    #[track_caller]
    pub fn assert_none(self) {
        assert!(self.cases > 0, "a table without a case shows nothing");
        let failed = self.failed.len();
        assert!(failed == 0, "{failed} of {} cases failed\n{}", self.cases, self.failed.join("\n"));
    }
}

/// The worst element over all rows. `of_row` gives a row's divisor and what is forgiven an element.
fn worst_of_rows<T: Copy + Into<f64>, F: Fn(f32) -> f64>(
    got: &[T],
    recorded: &[f32],
    width: usize,
    of_row: impl Fn(usize) -> (f64, F),
) -> RelativeError {
    assert!(!recorded.is_empty() && width > 0, "a comparison has elements");
    assert_eq!(got.len(), recorded.len(), "elements to compare");
    assert_eq!(recorded.len() % width, 0, "{} elements of rows of {width}", recorded.len());
    let mut worst = RelativeError { value: 0.0, row: 0, column: 0 };
    for row in 0..recorded.len() / width {
        let (divisor, forgiven) = of_row(row);
        for column in 0..width {
            let (got, recorded) =
                (got[row * width + column].into(), recorded[row * width + column]);
            let value = if !got.is_finite() || !recorded.is_finite() || !divisor.is_finite() {
                f64::INFINITY
            } else {
                let off = ((got - f64::from(recorded)).abs() - forgiven(recorded)).max(0.0);
                if off == 0.0 { 0.0 } else { off / divisor }
            };
            if value > worst.value {
                worst = RelativeError { value, row, column };
            }
        }
    }
    worst
}

/// The largest magnitude; infinity if anything is not finite.
fn widest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |widest, x| if x.is_finite() { widest.max(x.abs()) } else { f64::INFINITY })
}

fn check_lengths(got: usize, expected: usize) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("got {got} elements, expected {expected}")) }
}

/// The report on the elements `wrong` of `len`, or nothing if there are none.
fn report(
    wrong: impl Iterator<Item = usize>,
    len: usize,
    describe: impl Fn(usize) -> String,
) -> Result<(), String> {
    let wrong: Vec<usize> = wrong.collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let mut text = format!("{} of {len} elements differ", wrong.len());
    for &i in wrong.iter().take(SHOWN) {
        let _ = write!(text, "\n  [{i}] {}", describe(i));
    }
    if wrong.len() > SHOWN {
        let _ = write!(
            text,
            "\n  and {} more, the last at {}",
            wrong.len() - SHOWN,
            wrong[wrong.len() - 1]
        );
    }
    Err(text)
}

#[track_caller]
fn fail(context: &str, result: Result<(), String>) {
    if let Err(report) = result {
        panic!("{context}: {report}");
    }
}

#[cfg(test)]
mod tests;
