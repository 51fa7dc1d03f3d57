//! Rounding to Q8_0 as plain code: the definition.

use crate::kv_cache::DIM_BLOCK;
use half::f16;

/// With `amax` the largest magnitude, the scale is `f16(amax / 127)` and a quant the integer nearest to
/// `x * (127 / amax)`, ties to even. Where the scale rounds to zero, everything is zero.
pub(super) fn round(row: &[f32; DIM_BLOCK], quants: &mut [i8; DIM_BLOCK], scale: &mut f16) {
    let amax = row.iter().fold(0.0f32, |amax, x| amax.max(x.abs()));
    *scale = f16::from_f32(amax / 127.0);
    let factor = if *scale == f16::ZERO { 0.0 } else { 127.0 / amax };
    for (quant, x) in quants.iter_mut().zip(row) {
        *quant = (x * factor).round_ties_even() as i8;
    }
}
