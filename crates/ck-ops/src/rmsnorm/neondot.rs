//! RMSNorm with NEON.

use super::wide;
use ck_isa::NeonDot;

#[target_feature(enable = "neon,dotprod")]
pub(super) fn sum_of_squares(token: NeonDot, x: &[f32]) -> f64 {
    wide::sum_of_squares(token, x)
}

#[target_feature(enable = "neon,dotprod")]
pub(super) fn apply(token: NeonDot, x: &[f32], gamma: &[f32], scale: f32, out: &mut [f32]) {
    wide::apply(token, x, gamma, scale, out);
}
