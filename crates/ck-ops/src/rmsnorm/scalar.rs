//! RMSNorm as plain code: the definition.

use super::PARTS;
use crate::halves::by_halves;

/// The sum of the squares, in `f64`: element `i` goes to partial sum `i % 8`, in order; then the partial
/// sums are combined by halves. The square of an `f32` is exact in `f64`.
pub(super) fn sum_of_squares(x: &[f32]) -> f64 {
    let mut parts = [0.0; PARTS];
    for (i, &value) in x.iter().enumerate() {
        let value = f64::from(value);
        parts[i % PARTS] += value * value;
    }
    by_halves(&mut parts, |a, b| a + b)
}

/// `(x * scale) * gamma`.
pub(super) fn apply(x: &[f32], gamma: &[f32], scale: f32, out: &mut [f32]) {
    for ((y, &x), &gamma) in out.iter_mut().zip(x).zip(gamma) {
        *y = (x * scale) * gamma;
    }
}
