//! RMSNorm with AVX-512.

use super::wide;
use ck_isa::Avx512Vnni;

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
pub(super) fn sum_of_squares(token: Avx512Vnni, x: &[f32]) -> f64 {
    wide::sum_of_squares(token, x)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
pub(super) fn apply(token: Avx512Vnni, x: &[f32], gamma: &[f32], scale: f32, out: &mut [f32]) {
    wide::apply(token, x, gamma, scale, out);
}
