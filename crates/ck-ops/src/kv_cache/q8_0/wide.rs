//! Rounding to Q8_0 over vectors.
//!
//! 1. Adding `1.5 * 2^23` leaves no place for a fraction: the sum rounds to an integer, ties to even, and the lowest
//!    byte of its pattern is that integer in two's complement. `x * (127 / amax)` is at most 127 and a few
//!    units of roundoff, so the sum rounds to 127 at most, and a byte holds it.

use crate::kv_cache::DIM_BLOCK;
use ck_isa::Vectors;
use half::f16;

/// What leaves no place for a fraction.
const INTEGERS: f32 = 12_582_912.0;

#[inline(always)]
pub(super) fn round<V: Vectors>(
    v: V,
    row: &[f32; DIM_BLOCK],
    quants: &mut [i8; DIM_BLOCK],
    scale: &mut f16,
) {
    let mut amax = v.splat(0.0);
    for lanes in row.chunks_exact(V::LANES) {
        amax = v.max(v.abs(v.load(lanes)), amax);
    }
    let amax = v.max_lanes(amax);
    *scale = f16::from_f32(amax / 127.0);
    let factor = v.splat(if *scale == f16::ZERO { 0.0 } else { 127.0 / amax });
    let mut sums = [0.0f32; DIM_BLOCK];
    for (lanes, sums) in row.chunks_exact(V::LANES).zip(sums.chunks_exact_mut(V::LANES)) {
        let scaled = v.mul(v.load(lanes), factor);
        v.store(v.add(scaled, v.splat(INTEGERS)), sums);
    }
    for (quant, sum) in quants.iter_mut().zip(sums) {
        *quant = sum.to_bits() as i8;
    }
}
