//! The rotation with AVX-512.

use super::wide;
use ck_isa::Avx512Vnni;

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
pub(super) fn rotate_split_half(token: Avx512Vnni, cos: &[f32], sin: &[f32], head: &mut [f32]) {
    wide::rotate_split_half(token, cos, sin, head);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
pub(super) fn rotate_interleaved(token: Avx512Vnni, cos: &[f32], sin: &[f32], head: &mut [f32]) {
    wide::rotate_interleaved(token, cos, sin, head);
}
