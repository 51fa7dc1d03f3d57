//! Rounding to `f16` with AVX2.

use super::wide;
use ck_isa::Avx2;
use half::f16;

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn round(token: Avx2, row: &[f32], elements: &mut [f16]) {
    wide::round(token, row, elements);
}
