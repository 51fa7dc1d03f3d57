//! Attention over one chunk, over vectors.
//!
//! Three passes over scores that stay in the first-level cache, for up to [`heads_at_once`] query heads of one KV head
//! together: [`scores`], [`softmax`] and [`values`]. Each file says what it does beyond the scalar code.
//!
//! Where the time goes, at 1024 positions of `f16` in the second-level cache, sampled, on a Sapphire Rapids Xeon (14 query
//! heads on 2 KV heads of dimension 64): scores 39 %, values 38 %, softmax 17 %, packing and asking for lines 5 %. The
//! multiply-adds of scores and values alone would take 58 %; widening `f16` takes a seventh of their slots. While 256 MiB of
//! such caches stream, at 4096 positions, it takes 193 us, where it takes 126 us hot and reading alone 147 us.
//!
//! What did not help, measured by `examples/attention_speed.rs` on that machine (2 MiB of second-level cache, 28 GB/s beyond
//! it) and these heads:
//!
//! - Queries left where the caller has them, `[head][head_dim]`: eight addresses are too many for the general
//!   registers beside those of the panels. Packing them costs one pass over the query per chunk.
//! - Values by whole rows, `[position][head_dim]`, walked once for every 32 dimensions: as quick while the cache fits
//!   the second level, 1.4 times as long beyond it (4096 positions of `f16`: 187 us instead of 134 us).
//! - Asking for lines 1.5 KiB, 8 KiB or 16 KiB ahead instead of 3 KiB, while 256 MiB of caches of `f16` stream from memory in
//!   pages of 2 MiB: 16 % slower at 1.5 KiB, up to 10 % at the others. 4 KiB was as good for `f16` and 8 % slower for `f32`.
//!   Without asking, a third slower.
//! - Asking in the second level only, at 3 to 16 KiB; there and later in the first; only for every second or fourth
//!   line; for the phase after this one (values during scores, the next chunk's keys during values): between as quick and
//!   half as quick.

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
    let mut coming = view.next_keys.chunks(LINE / size_of::<E>());
    let blocks = q
        .chunks(heads_at_once::<V>() * head_dim)
        .zip(partials.chunks_mut(heads_at_once::<V>() * len));
    for (q, partials) in blocks {
        pack(q, work.queries);
        scores::scores(v, view, q.len() / head_dim, work);
        for (row, partial) in work.scores.iter_mut().zip(partials.chunks_exact_mut(len)) {
            let Some((max, sum)) = softmax(v, view, &edges, row, &mut coming) else { return false };
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

/// How many bytes ahead of their use keys and values are asked for. Panels, blocks, and the values after the keys follow
/// each other in memory, so that what lies there is what comes next.
const AHEAD: usize = 3 << 10;

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Asks for the cache lines [`AHEAD`] bytes after `row`, wherever that is.
#[inline(always)]
fn prefetch_row<V: Vectors, T, const N: usize>(v: V, row: &[T; N]) {
    let ahead = row.as_ptr().cast::<u8>().wrapping_add(AHEAD);
    for line in (0..size_of::<[T; N]>()).step_by(LINE) {
        v.prefetch(ahead.wrapping_add(line));
    }
}
