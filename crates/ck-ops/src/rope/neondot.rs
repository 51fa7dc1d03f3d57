//! The rotation with NEON.

use super::wide;
use ck_isa::NeonDot;

#[target_feature(enable = "neon,dotprod")]
pub(super) fn rotate_split_half(token: NeonDot, cos: &[f32], sin: &[f32], head: &mut [f32]) {
    wide::rotate_split_half(token, cos, sin, head);
}

#[target_feature(enable = "neon,dotprod")]
pub(super) fn rotate_interleaved(token: NeonDot, cos: &[f32], sin: &[f32], head: &mut [f32]) {
    wide::rotate_interleaved(token, cos, sin, head);
}
