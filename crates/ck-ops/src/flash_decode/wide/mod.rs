//! Attention over one chunk, over vectors.
//!
//! Three passes over scores that stay in the first-level cache, for up to [`heads_at_once`] query heads of one KV head
//! together: [`scores`], [`softmax`] and [`values`]. Each file says what it does beyond the scalar code.

mod merge;
mod scores;
mod softmax;
mod values;

use super::context::ChunkView;
use super::scratch::Scores;
use super::{Partial, partial_len};
use crate::CacheElement;
use ck_isa::Vectors;
pub(super) use merge::{finish, fold};
use softmax::{Edges, softmax};

/// Query heads served by one pass over keys and values: as many as there are registers for.
const fn heads_at_once<V: Vectors>() -> usize {
    if V::LANES == 16 { 8 } else { 4 }
}

/// Computes the partial result of every head of `q`; false if a score is not finite.
#[inline(always)]
pub(super) fn attend<V: Vectors, E: CacheElement>(
    v: V,
    view: &ChunkView<'_, E>,
    q: &[f32],
    scores: &mut Scores,
    partials: &mut [f32],
) -> bool {
    let (head_dim, len) = (view.head_dim, partial_len(view.head_dim));
    let blocks = q
        .chunks(heads_at_once::<V>() * head_dim)
        .zip(partials.chunks_mut(heads_at_once::<V>() * len));
    let edges = Edges::of(&view.visible);
    for (q, partials) in blocks {
        scores::scores(v, view, q, scores);
        for (row, partial) in scores.iter_mut().zip(partials.chunks_exact_mut(len)) {
            let Some((max, sum)) = softmax(v, view, &edges, row) else { return false };
            partial[Partial::max(head_dim)] = max;
            partial[Partial::sum(head_dim)] = sum;
        }
        values::weighted_sums(v, view, scores, partials);
    }
    true
}
