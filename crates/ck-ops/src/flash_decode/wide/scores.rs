//! The products of queries and keys. Lanes are positions.
//!
//! A key panel holds, for each head dimension `d`, the elements of 16 positions side by side:
//!
//! ```text
//! for each block of panels, for d in 0..head_dim:
//!     keys = the block's 16 (or 32, ...) elements of dimension d
//!     for each query head: sums[head] = fma(q[head][d], keys, sums[head])
//! ```
//!
//! 1. Every sum is one lane of one register and is added to in the order of `d`: the scalar order.
//! 2. Heads times vectors of keys is the number of independent sums. It is chosen so that there are at least eight
//!    (two multiply-adds a cycle, four cycles each) wherever there are heads and panels enough, and so that
//!    they fit the registers with the keys and one query element. A key vector is loaded, and widened, once for
//!    all heads; a query element once for all vectors.
//! 3. Lanes that are not visible are computed all the same, from whatever the panel holds, and overwritten later.

use crate::CacheElement;
use crate::flash_decode::context::ChunkView;
use crate::flash_decode::scratch::Scores;
use crate::kv_cache::{HeadSegment, PANEL};
use ck_isa::Vectors;
use std::ops::Range;

/// Writes the unscaled scores of every head of `q` at every visible position, and some that mean nothing.
#[inline(always)]
pub(super) fn scores<V: Vectors, E: CacheElement>(
    v: V,
    view: &ChunkView<'_, E>,
    q: &[f32],
    scores: &mut Scores,
) {
    // The second constant is the number of vectors at once, the third that of one panel.
    match (V::LANES, q.len() / view.head_dim) {
        (16, 1) => heads::<V, E, 1, 4, 1>(v, view, q, scores),
        (16, 2) => heads::<V, E, 2, 4, 1>(v, view, q, scores),
        (16, 3) => heads::<V, E, 3, 4, 1>(v, view, q, scores),
        (16, 4) => heads::<V, E, 4, 4, 1>(v, view, q, scores),
        (16, 5) => heads::<V, E, 5, 2, 1>(v, view, q, scores),
        (16, 6) => heads::<V, E, 6, 2, 1>(v, view, q, scores),
        (16, 7) => heads::<V, E, 7, 2, 1>(v, view, q, scores),
        (16, 8) => heads::<V, E, 8, 2, 1>(v, view, q, scores),
        (8, 1) => heads::<V, E, 1, 8, 2>(v, view, q, scores),
        (8, 2) => heads::<V, E, 2, 4, 2>(v, view, q, scores),
        (8, 3) => heads::<V, E, 3, 2, 2>(v, view, q, scores),
        (8, 4) => heads::<V, E, 4, 2, 2>(v, view, q, scores),
        (4, 1) => heads::<V, E, 1, 8, 4>(v, view, q, scores),
        (4, 2) => heads::<V, E, 2, 8, 4>(v, view, q, scores),
        (4, 3) => heads::<V, E, 3, 4, 4>(v, view, q, scores),
        (4, 4) => heads::<V, E, 4, 4, 4>(v, view, q, scores),
        (lanes, heads) => unreachable!("{heads} heads at once with {lanes} lanes"),
    }
}

/// The scores of `H` heads: cached panels by blocks of `N` vectors, what is left by single panels (`ONE` vectors),
/// then the new position.
#[inline(always)]
fn heads<V: Vectors, E: CacheElement, const H: usize, const N: usize, const ONE: usize>(
    v: V,
    view: &ChunkView<'_, E>,
    q: &[f32],
    scores: &mut Scores,
) {
    let q: [&[f32]; H] = std::array::from_fn(|head| &q[head * view.head_dim..][..view.head_dim]);
    if let Some(cached) = &view.cached {
        for Range { start, end } in view.cached_panels() {
            let mut panel = start;
            while panel + N / ONE <= end {
                block::<V, E, H, N>(v, cached, panel, q, scores, panel * PANEL);
                panel += N / ONE;
            }
            while panel < end {
                block::<V, E, H, ONE>(v, cached, panel, q, scores, panel * PANEL);
                panel += 1;
            }
        }
    }
    if let Some((place, new)) = &view.new {
        // Only the first lane counts. It is the last position, so that the other lanes overwrite nothing.
        block::<V, E, H, ONE>(v, new, 0, q, scores, *place);
    }
}

/// The scores of `H` heads with `N` vectors of keys, from panel `panel` on; they go to `scores` from `first` on.
#[inline(always)]
fn block<V: Vectors, E: CacheElement, const H: usize, const N: usize>(
    v: V,
    segment: &HeadSegment<'_, E>,
    panel: usize,
    q: [&[f32]; H],
    scores: &mut Scores,
    first: usize,
) {
    let head_dim = segment.head_dim;
    let vectors_per_panel = PANEL / V::LANES;
    let panels: [&[[E; PANEL]]; N] =
        std::array::from_fn(|n| &segment.panel(panel + n / vectors_per_panel)[..head_dim]);
    let q: [&[f32]; H] = std::array::from_fn(|head| &q[head][..head_dim]);
    let mut sums = [[v.splat(0.0); N]; H];
    for d in 0..head_dim {
        let mut keys = [v.splat(0.0); N];
        for n in 0..N {
            let lane = n % vectors_per_panel * V::LANES;
            keys[n] = E::load(v, &panels[n][d][lane..lane + V::LANES]);
        }
        for head in 0..H {
            let q = v.splat(q[head][d]);
            for n in 0..N {
                sums[head][n] = v.fma(q, keys[n], sums[head][n]);
            }
        }
    }
    for head in 0..H {
        for n in 0..N {
            v.store(sums[head][n], &mut scores[head][first + n * V::LANES..]);
        }
    }
}
