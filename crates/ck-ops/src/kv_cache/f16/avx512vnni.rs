//! Rounding to `f16` with AVX-512.

use super::wide;
use ck_isa::Avx512Vnni;
use half::f16;

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
pub(super) fn round(token: Avx512Vnni, row: &[f32], elements: &mut [f16]) {
    wide::round(token, row, elements);
}
