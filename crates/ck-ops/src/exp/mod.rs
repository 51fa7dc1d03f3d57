//! The exponential and the hyperbolic tangent: one polynomial, the same bits at every width.
//!
//! With `n` the integer nearest to `x / ln 2` and `r = x - n ln 2`, `exp(x) = 2^n exp(r)` and
//! `exp(r) = 1 + r + r^2 q(r)` on `|r| <= ln 2 / 2`. The coefficients of `q` were fitted for this crate: least
//! largest relative error by iteratively reweighted least squares, each coefficient rounded to `f32` and
//! the rest fitted again. The polynomial's own error is 0.06 of half an ulp.
//!
//! Only operations with one IEEE result are used (multiply, add, fused multiply-add, divide, bit patterns of
//! powers of two), so vectors of any width repeat them lane by lane.

mod scalar;
#[cfg(test)]
mod tests;
pub(crate) mod wide;

/// Coefficients of `q`, lowest power first.
const Q: [f32; 5] = [
    f32::from_bits(0x3eff_fffe), //  0.49999994
    f32::from_bits(0x3e2a_aa49), //  0.16666521
    f32::from_bits(0x3d2a_ac56), //  0.04166826
    f32::from_bits(0x3c09_1cba), //  0.008368665
    f32::from_bits(0x3ab5_283e), //  0.0013821197
];

/// `ln 2` rounded to `f32`. For the `n` that occur, `x - n * LN2_HIGH` is exact: both are multiples of `2^-25`
/// and the difference is below a half.
const LN2_HIGH: f32 = std::f32::consts::LN_2;

/// `ln 2 - LN2_HIGH`, rounded to `f32`.
const LN2_LOW: f32 = -1.904_654_3e-9;

/// Adding this rounds to an integer, which then stands in the low bits: `1.5 * 2^23`.
const ROUNDER: f32 = 12_582_912.0;

/// Below this `exp` is zero: it is less than half of the smallest subnormal, `2^-149`.
const LOWEST: f32 = -104.0;

/// Above this `exp` is infinite.
const HIGHEST: f32 = 89.0;

/// How far [`exp`] is from the true value at most, in ulps: measured over all inputs (1.0129 at 59.306).
#[cfg(test)]
pub(crate) const EXP_ULPS: f64 = 1.02;

/// How far [`tanh`] is from the true value at most, in ulps: measured over all inputs (2.4984 at 4.505).
#[cfg(test)]
pub(crate) const TANH_ULPS: f64 = 2.5;

/// `e` to the power of `x`.
///
/// Within 1.02 ulp of the true value for every `f32` (measured over all of them), subnormal results
/// included. `exp(0)` is 1, `exp(-inf)` is 0, `exp(inf)` is infinite, and NaN stays NaN. The bits are the same on
/// every machine.
///
/// ```
/// assert_eq!(ck_ops::exp(0.0), 1.0);
/// assert_eq!(ck_ops::exp(1.0), std::f32::consts::E);
/// ```
#[must_use]
pub fn exp(x: f32) -> f32 {
    scalar::exp(x)
}

/// The hyperbolic tangent of `x`, made from the same polynomial as [`exp`].
///
/// Within 2.5 ulp of the true value for every `f32` (measured over all of them). Odd, also for zeros; NaN stays
/// NaN. The bits are the same on every machine.
///
/// ```
/// assert_eq!(ck_ops::tanh(-0.0).to_bits(), (-0.0f32).to_bits());
/// assert_eq!(ck_ops::tanh(f32::INFINITY), 1.0);
/// ```
#[must_use]
pub fn tanh(x: f32) -> f32 {
    scalar::tanh(x)
}
