//! Attention over one chunk, and merging, with AVX2.

use super::context::ChunkView;
use super::scratch::Scores;
use super::wide;
use crate::CacheElement;
use ck_isa::Avx2;

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn attend<E: CacheElement>(
    token: Avx2,
    view: &ChunkView<'_, E>,
    q: &[f32],
    scores: &mut Scores,
    partials: &mut [f32],
) -> bool {
    wide::attend(token, view, q, scores, partials)
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn fold(token: Avx2, head_dim: usize, total: &mut [f32], partial: &[f32]) {
    wide::fold(token, head_dim, total, partial);
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn finish(token: Avx2, total: &[f32], out: &mut [f32]) {
    wide::finish(token, total, out);
}
