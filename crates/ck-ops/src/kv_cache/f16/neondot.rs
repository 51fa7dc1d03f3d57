//! Rounding to `f16` with NEON.

use super::wide;
use ck_isa::NeonDot;
use half::f16;

#[target_feature(enable = "neon,dotprod")]
pub(super) fn round(token: NeonDot, row: &[f32], elements: &mut [f16]) {
    wide::round(token, row, elements);
}
