//! The products of queries and keys. Lanes are positions.
//!
//! A key panel holds, for each head dimension `d`, the elements of 32 positions side by side:
//!
//! ```text
//! for each block of positions, for d in 0..head_dim:
//!     keys = the block's elements of dimension d
//!     for each query head: sums[head] = fma(q[head][d], keys, sums[head])
//! ```
//!
//! 1. Every sum is one lane of one register and is added to in the order of `d`: the scalar order.
//! 2. Heads times vectors of keys is the number of independent sums. There are at least eight of them (two
//!    multiply-adds a cycle, four cycles each) wherever heads and positions are enough, and no more than fit the
//!    registers with the keys and one query element. A key vector is loaded, and widened, once for all heads; a
//!    query element once for all vectors.
//! 3. Lanes that are not visible are computed all the same, from whatever the panel holds, and overwritten later.

#![allow(
    clippy::needless_range_loop,
    reason = "loops of constant length over arrays unroll into registers; array iterators may not"
)]

use super::prefetch_row;
use crate::CacheElement;
use crate::flash_decode::context::ChunkView;
use crate::flash_decode::scratch::{Scores, Work};
use crate::flash_decode::{HEADS_PER_ITEM, PARTS};
use crate::kv_cache::{DIM_BLOCK, HeadSegment, PANEL};
use ck_isa::Vectors;

/// Writes the unscaled scores of the first `heads` packed queries at every visible position, and some that
/// mean nothing.
#[inline(always)]
pub(super) fn scores<V: Vectors, E: CacheElement>(
    v: V,
    view: &ChunkView<'_, E>,
    heads: usize,
    work: &mut Work<'_>,
) {
    // Heads, panels at once, vectors of each at once, vectors of half a panel.
    match (V::LANES, heads) {
        (16, 1) => of_heads::<V, E, 1, 4, 2, 1>(v, view, work),
        (16, 2) => of_heads::<V, E, 2, 2, 2, 1>(v, view, work),
        (16, 3) => of_heads::<V, E, 3, 2, 2, 1>(v, view, work),
        (16, 4) => of_heads::<V, E, 4, 2, 2, 1>(v, view, work),
        (16, 5) => of_heads::<V, E, 5, 1, 2, 1>(v, view, work),
        (16, 6) => of_heads::<V, E, 6, 1, 2, 1>(v, view, work),
        (16, 7) => of_heads::<V, E, 7, 1, 2, 1>(v, view, work),
        (16, 8) => of_heads::<V, E, 8, 1, 2, 1>(v, view, work),
        (8, 1) => of_heads::<V, E, 1, 2, 4, 2>(v, view, work),
        (8, 2) => of_heads::<V, E, 2, 1, 4, 2>(v, view, work),
        (8, 3) => of_heads::<V, E, 3, 1, 2, 2>(v, view, work),
        (8, 4) => of_heads::<V, E, 4, 1, 2, 2>(v, view, work),
        (4, 1) => of_heads::<V, E, 1, 1, 8, 4>(v, view, work),
        (4, 2) => of_heads::<V, E, 2, 1, 8, 4>(v, view, work),
        (4, 3) => of_heads::<V, E, 3, 1, 4, 4>(v, view, work),
        (4, 4) => of_heads::<V, E, 4, 1, 4, 4>(v, view, work),
        (lanes, heads) => unreachable!("{heads} heads at once with {lanes} lanes"),
    }
}

/// The scores of `H` heads: `P` panels at once by `N` vectors of each, what is left by half panels of `HALF`
/// vectors, and the new position.
#[inline(always)]
fn of_heads<
    V: Vectors,
    E: CacheElement,
    const H: usize,
    const P: usize,
    const N: usize,
    const HALF: usize,
>(
    v: V,
    view: &ChunkView<'_, E>,
    work: &mut Work<'_>,
) {
    let Work { scores, queries } = work;
    if let Some(cached) = &view.cached {
        for span in view.cached_spans() {
            let mut position = span.start;
            while position < span.end {
                let (panel, lane) = (position / PANEL, position % PANEL);
                if lane == 0 && position + P * PANEL <= span.end {
                    for lane in (0..PANEL).step_by(N * V::LANES) {
                        block::<V, E, H, P, N>(v, cached, (panel, lane), queries, scores, position);
                    }
                    position += P * PANEL;
                } else {
                    block::<V, E, H, 1, HALF>(
                        v,
                        cached,
                        (panel, lane),
                        queries,
                        scores,
                        position - lane,
                    );
                    position += PARTS;
                }
            }
        }
    }
    if let Some((place, new)) = &view.new {
        // Only the first lane counts. It is the last position, so that the other lanes overwrite nothing.
        block::<V, E, H, 1, 1>(v, new, (0, 0), queries, scores, *place);
    }
}

/// The scores of `H` heads with `N` vectors of keys from lane `lane` on of each of `P` panels from `panel` on. The
/// score of lane 0 of the first panel goes to `first`.
#[inline(always)]
fn block<V: Vectors, E: CacheElement, const H: usize, const P: usize, const N: usize>(
    v: V,
    segment: &HeadSegment<'_, E>,
    (panel, lane): (usize, usize),
    queries: &[[f32; HEADS_PER_ITEM]],
    scores: &mut Scores,
    first: usize,
) {
    assert!(lane + N * V::LANES <= PANEL);
    // Loops instead of `array::from_fn`, which may stay a call; around a call every sum would be spilled.
    let mut panels: [&[[E; PANEL]]; P] = [&[]; P];
    for p in 0..P {
        panels[p] = segment.panel(panel + p);
    }
    let mut sums = [[[v.splat(0.0); N]; P]; H];
    // Rows that share their scales.
    let run = if E::IS_SCALED { DIM_BLOCK } else { queries.len() };
    for (index, queries) in queries.chunks(run).enumerate() {
        let mut rows: [&[[E; PANEL]]; P] = [&[]; P];
        for p in 0..P {
            rows[p] = &panels[p][index * run..][..queries.len()];
        }
        let mut scales = [[v.splat(1.0); N]; P];
        if E::IS_SCALED {
            for p in 0..P {
                let row = &segment.panel_scales(panel + p)[index];
                for n in 0..N {
                    let lane = lane + n * V::LANES;
                    scales[p][n] =
                        v.load_f16(bytemuck::must_cast_slice(&row[lane..lane + V::LANES]));
                }
            }
        }
        for (d, q) in queries.iter().enumerate() {
            for p in 0..P {
                prefetch_row(v, &rows[p][d]);
            }
            let mut keys = [[v.splat(0.0); N]; P];
            for p in 0..P {
                for n in 0..N {
                    let lane = lane + n * V::LANES;
                    keys[p][n] = E::load(v, &rows[p][d][lane..lane + V::LANES]);
                    if E::IS_SCALED {
                        keys[p][n] = v.mul(keys[p][n], scales[p][n]);
                    }
                }
            }
            for head in 0..H {
                let q = v.splat(q[head]);
                for p in 0..P {
                    for n in 0..N {
                        sums[head][p][n] = v.fma(q, keys[p][n], sums[head][p][n]);
                    }
                }
            }
        }
    }
    for head in 0..H {
        for p in 0..P {
            for n in 0..N {
                let start = first + p * PANEL + lane + n * V::LANES;
                v.store(sums[head][p][n], &mut scores[head][start..start + V::LANES]);
            }
        }
    }
}
