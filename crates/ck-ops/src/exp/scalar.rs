//! The exponential as plain code: the definition.

use super::{HIGHEST, LN2_HIGH, LN2_LOW, LOWEST, Q, ROUNDER};
use ck_isa::fma;
use std::f32::consts::LOG2_E;

/// `n` and `exp(r) - 1`, where `x = n ln 2 + r`.
#[inline(always)]
fn reduce(x: f32) -> (i32, f32) {
    let shifted = fma(x, LOG2_E, ROUNDER);
    let n = shifted - ROUNDER;
    let r = fma(n, -LN2_HIGH, x);
    let r = fma(n, -LN2_LOW, r);
    let q = fma(Q[4], r, Q[3]);
    let q = fma(q, r, Q[2]);
    let q = fma(q, r, Q[1]);
    let q = fma(q, r, Q[0]);
    let exponent = shifted.to_bits().wrapping_sub(ROUNDER.to_bits()).cast_signed();
    (exponent, fma(q, r * r, r))
}

/// `2^n` for the exponents of normal numbers; what it gives for others (of a NaN) does not matter.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits(n.wrapping_add(127).cast_unsigned() << 23)
}

/// `value * 2^n` with one rounding: for `value` in [0.5, 2) the first product is exact.
#[inline(always)]
fn scale(value: f32, n: i32) -> f32 {
    let half = n >> 1;
    value * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Both selections keep a NaN.
    let x = if LOWEST > x { LOWEST } else { x };
    let x = if HIGHEST < x { HIGHEST } else { x };
    let (n, below) = reduce(x);
    scale(1.0 + below, n)
}

#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    // With e = exp(-2|x|): tanh|x| = (1 - e) / (1 + e) = -(e - 1) / (2 + (e - 1)). Made from e - 1, which has
    // no cancellation, it is as exact for small x as for large. At -104 it is -1.
    let y = -2.0 * x.abs();
    let y = if LOWEST > y { LOWEST } else { y };
    let (n, below) = reduce(y);
    // 2^n (1 + below) - 1, and n >= -150: two factors again, since 2^n itself may be subnormal.
    let two_n = scale(1.0, n);
    let e_minus_1 = fma(two_n, below, two_n - 1.0);
    // The quotient is negative or zero; its sign becomes that of `x`.
    (e_minus_1 / (2.0 + e_minus_1)).copysign(x)
}
