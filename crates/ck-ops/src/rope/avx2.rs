//! The rotation with AVX2.

use super::wide;
use ck_isa::Avx2;

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn rotate_split_half(token: Avx2, cos: &[f32], sin: &[f32], head: &mut [f32]) {
    wide::rotate_split_half(token, cos, sin, head);
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn rotate_interleaved(token: Avx2, cos: &[f32], sin: &[f32], head: &mut [f32]) {
    wide::rotate_interleaved(token, cos, sin, head);
}
