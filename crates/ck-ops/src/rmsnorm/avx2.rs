//! RMSNorm with AVX2.

use super::wide;
use ck_isa::Avx2;

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn sum_of_squares(token: Avx2, x: &[f32]) -> f64 {
    wide::sum_of_squares(token, x)
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn apply(token: Avx2, x: &[f32], gamma: &[f32], scale: f32, out: &mut [f32]) {
    wide::apply(token, x, gamma, scale, out);
}
