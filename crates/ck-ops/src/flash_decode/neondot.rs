//! Attention over one chunk, and merging, with NEON.

use super::context::ChunkView;
use super::scratch::Scores;
use super::wide;
use crate::CacheElement;
use ck_isa::NeonDot;

#[target_feature(enable = "neon,dotprod")]
pub(super) fn attend<E: CacheElement>(
    token: NeonDot,
    view: &ChunkView<'_, E>,
    q: &[f32],
    scores: &mut Scores,
    partials: &mut [f32],
) -> bool {
    wide::attend(token, view, q, scores, partials)
}

#[target_feature(enable = "neon,dotprod")]
pub(super) fn fold(token: NeonDot, head_dim: usize, total: &mut [f32], partial: &[f32]) {
    wide::fold(token, head_dim, total, partial);
}

#[target_feature(enable = "neon,dotprod")]
pub(super) fn finish(token: NeonDot, total: &[f32], out: &mut [f32]) {
    wide::finish(token, total, out);
}
