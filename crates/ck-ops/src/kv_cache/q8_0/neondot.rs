//! Rounding to Q8_0 with NEON.

use super::wide;
use crate::kv_cache::DIM_BLOCK;
use ck_isa::NeonDot;
use half::f16;

#[target_feature(enable = "neon,dotprod")]
pub(super) fn round(
    token: NeonDot,
    row: &[f32; DIM_BLOCK],
    quants: &mut [i8; DIM_BLOCK],
    scale: &mut f16,
) {
    wide::round(token, row, quants, scale);
}
