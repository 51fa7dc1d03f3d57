//! The exponential and the tangent over vectors: the scalar code lane by lane. Each selection there is a minimum or
//! a maximum here, in the order that keeps a NaN.

use super::{HIGHEST, LN2_HIGH, LN2_LOW, LOWEST, Q, ROUNDER};
use ck_isa::Vectors;
use std::f32::consts::LOG2_E;

/// `n` and `exp(r) - 1`, where `x = n ln 2 + r`.
#[inline(always)]
fn reduce<V: Vectors>(v: V, x: V::F32) -> (V::F32, V::F32) {
    let rounder = v.splat(ROUNDER);
    let n = v.sub(v.fma(x, v.splat(LOG2_E), rounder), rounder);
    let r = v.neg_fma(n, v.splat(LN2_HIGH), x);
    let r = v.neg_fma(n, v.splat(LN2_LOW), r);
    let q = v.fma(v.splat(Q[4]), r, v.splat(Q[3]));
    let q = v.fma(q, r, v.splat(Q[2]));
    let q = v.fma(q, r, v.splat(Q[1]));
    let q = v.fma(q, r, v.splat(Q[0]));
    (n, v.fma(q, v.mul(r, r), r))
}

/// [`exp`](super::exp) of every lane.
#[inline(always)]
pub(crate) fn exp<V: Vectors>(v: V, x: V::F32) -> V::F32 {
    let x = v.max(v.splat(LOWEST), x);
    let x = v.min(v.splat(HIGHEST), x);
    let (n, below) = reduce(v, x);
    v.mul_power_of_two(v.add(v.splat(1.0), below), n)
}

/// [`tanh`](super::tanh) of every lane.
#[inline(always)]
pub(crate) fn tanh<V: Vectors>(v: V, x: V::F32) -> V::F32 {
    let one = v.splat(1.0);
    let y = v.max(v.splat(LOWEST), v.mul(v.splat(-2.0), v.abs(x)));
    let (n, below) = reduce(v, y);
    let two_n = v.mul_power_of_two(one, n);
    let e_minus_1 = v.fma(two_n, below, v.sub(two_n, one));
    v.copysign(v.div(e_minus_1, v.add(v.splat(2.0), e_minus_1)), x)
}
