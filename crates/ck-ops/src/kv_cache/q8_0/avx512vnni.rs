//! Rounding to Q8_0 with AVX-512.

use super::wide;
use crate::kv_cache::DIM_BLOCK;
use ck_isa::Avx512Vnni;
use half::f16;

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
pub(super) fn round(
    token: Avx512Vnni,
    row: &[f32; DIM_BLOCK],
    quants: &mut [i8; DIM_BLOCK],
    scale: &mut f16,
) {
    wide::round(token, row, quants, scale);
}
