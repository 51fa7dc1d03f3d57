//! Attention over one chunk, over vectors.
//!
//! Three passes over scores that stay in the first-level cache, for up to [`heads_at_once`] query heads of one KV head
//! together: [`scores`], [`softmax`] and [`values`]. Each file says what it does beyond the scalar code.
//!
//! What did not help, measured by `examples/attention_speed.rs` on a Sapphire Rapids Xeon (2 MiB of second-level
//! cache, 28 GB/s beyond it), 14 query heads on 2 KV heads of dimension 64:
//!
//! - Queries left where the caller has them, `[head][head_dim]`: eight addresses are too many for the general
//!   registers beside those of the panels. Packing them costs one pass over the query per chunk.
//! - Values by whole rows, `[position][head_dim]`, walked once for every 32 dimensions: as quick while the cache fits
//!   the second level, 1.4 times as long beyond it (4096 positions of `f16`: 187 us instead of 134 us).
//! - Asking for rows 64, 160 or 400 ahead instead of 24: no better at 4096 positions of `f16`, 3 to 20 % worse at
//!   16384 positions of `f32`.
//! - Pages of 2 MiB: 3 to 10 % quicker beyond the second level, but then the cache of each layer takes 2 MiB for its
//!   first position.

mod merge;
mod scores;
mod softmax;
mod values;

use super::context::ChunkView;
use super::scratch::Work;
use super::{HEADS_PER_ITEM, Partial, partial_len};
use crate::CacheElement;
use ck_isa::Vectors;
pub(super) use merge::{finish, fold};
use softmax::{Edges, softmax};

/// Query heads served by one pass over keys and values: as many as there are registers for.
const fn heads_at_once<V: Vectors>() -> usize {
    if V::LANES == 16 { HEADS_PER_ITEM } else { HEADS_PER_ITEM / 2 }
}

/// Computes the partial result of every head of `q`; false if a score is not finite.
#[inline(always)]
pub(super) fn attend<V: Vectors, E: CacheElement>(
    v: V,
    view: &ChunkView<'_, E>,
    q: &[f32],
    work: &mut Work<'_>,
    partials: &mut [f32],
) -> bool {
    let (head_dim, len) = (view.head_dim, partial_len(view.head_dim));
    let edges = Edges::of(&view.visible);
    let blocks = q
        .chunks(heads_at_once::<V>() * head_dim)
        .zip(partials.chunks_mut(heads_at_once::<V>() * len));
    for (q, partials) in blocks {
        pack(q, work.queries);
        scores::scores(v, view, q.len() / head_dim, work);
        for (row, partial) in work.scores.iter_mut().zip(partials.chunks_exact_mut(len)) {
            let Some((max, sum)) = softmax(v, view, &edges, row) else { return false };
            partial[Partial::max(head_dim)] = max;
            partial[Partial::sum(head_dim)] = sum;
        }
        values::weighted_sums(v, view, work.scores, partials);
    }
    true
}

/// Lays the query heads side by side, so that their elements of one dimension are neighbours.
#[inline(always)]
fn pack(q: &[f32], queries: &mut [[f32; HEADS_PER_ITEM]]) {
    for (head, q) in q.chunks_exact(queries.len()).enumerate() {
        for (packed, &q) in queries.iter_mut().zip(q) {
            packed[head] = q;
        }
    }
}

/// How many rows ahead of their use keys and values are asked for: 3 KiB of `f32`. Panels, blocks, and the values
/// after the keys follow each other in memory, so that what lies there is what comes next.
const AHEAD: usize = 24;

/// Asks for the cache lines of the row [`AHEAD`] rows after `row`, wherever that is.
#[inline(always)]
fn prefetch_row<V: Vectors, T, const N: usize>(v: V, row: &[T; N]) {
    let ahead = row.as_ptr().wrapping_add(AHEAD * N).cast::<u8>();
    for line in (0..size_of::<[T; N]>()).step_by(64) {
        v.prefetch(ahead.wrapping_add(line));
    }
}
