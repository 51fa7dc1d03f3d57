//! The sums of the values by their weights. Lanes are head dimensions.
//!
//! A block of values holds 32 head dimensions of every position, row by row:
//!
//! ```text
//! for each block of head dimensions, for each visible position in order:
//!     values = the block's elements of that position
//!     for each query head: sums[head] = fma(weight[head][position], values, sums[head])
//! ```
//!
//! 1. Every sum is one lane of one register and is added to in the order of the positions: the scalar order.
//! 2. As with the scores, heads times vectors is the number of independent sums, and a vector of values is
//!    loaded and widened once for all heads.
//! 3. Where the head dimension is no multiple of 32, the last vector of a row may reach into what follows it. Those
//!    lanes are dimensions that do not exist; they are not stored.

#![allow(
    clippy::needless_range_loop,
    reason = "loops of constant length over arrays unroll into registers; array iterators may not"
)]

use super::prefetch_row;
use crate::CHUNK;
use crate::CacheElement;
use crate::flash_decode::context::{ChunkView, Run};
use crate::flash_decode::partial_len;
use crate::flash_decode::scratch::Scores;
use crate::kv_cache::DIM_BLOCK;
use ck_isa::{MAX_LANES, Vectors};
use half::f16;

/// Writes the weighted sums of every head of `partials`, from weights in the first rows of `weights`.
#[inline(always)]
pub(super) fn weighted_sums<V: Vectors, E: CacheElement>(
    v: V,
    view: &ChunkView<'_, E>,
    weights: &Scores,
    partials: &mut [f32],
) {
    // Heads, blocks at once, vectors of each at once.
    match (V::LANES, partials.len() / partial_len(view.head_dim)) {
        (16, 1) => of_heads::<V, E, 1, 2, 2>(v, view, weights, partials),
        (16, 2) => of_heads::<V, E, 2, 2, 2>(v, view, weights, partials),
        (16, 3) => of_heads::<V, E, 3, 2, 2>(v, view, weights, partials),
        (16, 4) => of_heads::<V, E, 4, 2, 2>(v, view, weights, partials),
        (16, 5) => of_heads::<V, E, 5, 1, 2>(v, view, weights, partials),
        (16, 6) => of_heads::<V, E, 6, 1, 2>(v, view, weights, partials),
        (16, 7) => of_heads::<V, E, 7, 1, 2>(v, view, weights, partials),
        (16, 8) => of_heads::<V, E, 8, 1, 2>(v, view, weights, partials),
        (8, 1) => of_heads::<V, E, 1, 2, 4>(v, view, weights, partials),
        (8, 2) => of_heads::<V, E, 2, 1, 4>(v, view, weights, partials),
        (8, 3) => of_heads::<V, E, 3, 1, 2>(v, view, weights, partials),
        (8, 4) => of_heads::<V, E, 4, 1, 2>(v, view, weights, partials),
        (4, 1) => of_heads::<V, E, 1, 1, 8>(v, view, weights, partials),
        (4, 2) => of_heads::<V, E, 2, 1, 8>(v, view, weights, partials),
        (4, 3) => of_heads::<V, E, 3, 1, 4>(v, view, weights, partials),
        (4, 4) => of_heads::<V, E, 4, 1, 4>(v, view, weights, partials),
        (lanes, heads) => unreachable!("{heads} heads at once with {lanes} lanes"),
    }
}

/// The sums of `H` heads: `B` blocks at once by `N` vectors of each, then single blocks, then what is left.
#[inline(always)]
fn of_heads<V: Vectors, E: CacheElement, const H: usize, const B: usize, const N: usize>(
    v: V,
    view: &ChunkView<'_, E>,
    weights: &Scores,
    partials: &mut [f32],
) {
    let runs = view.runs();
    let blocks = view.head_dim / DIM_BLOCK;
    let mut block = 0;
    while block + B <= blocks {
        for dim in (0..DIM_BLOCK).step_by(N * V::LANES) {
            self::block::<V, E, H, B, N>(v, view.head_dim, &runs, (block, dim), weights, partials);
        }
        block += B;
    }
    while block < blocks {
        for dim in (0..DIM_BLOCK).step_by(N * V::LANES) {
            self::block::<V, E, H, 1, N>(v, view.head_dim, &runs, (block, dim), weights, partials);
        }
        block += 1;
    }
    for dim in (blocks * DIM_BLOCK..view.head_dim).step_by(V::LANES) {
        rest::<V, E, H>(v, view.head_dim, &runs, dim, weights, partials);
    }
}

/// The sums of `H` heads for `N` vectors from dimension `dim` on of each of `B` blocks from `block` on.
#[inline(always)]
fn block<V: Vectors, E: CacheElement, const H: usize, const B: usize, const N: usize>(
    v: V,
    head_dim: usize,
    runs: &[Option<Run<'_, E>>],
    (block, dim): (usize, usize),
    weights: &Scores,
    partials: &mut [f32],
) {
    assert!(dim + N * V::LANES <= DIM_BLOCK);
    let mut scales = [[0.0; CHUNK]; B];
    let mut sums = [[[v.splat(0.0); N]; B]; H];
    for run in runs.iter().flatten() {
        // Loops instead of `array::from_fn`, which may stay a call; around a call every sum would be spilled.
        let mut rows: [&[[E; DIM_BLOCK]]; B] = [&[]; B];
        for b in 0..B {
            rows[b] = &run.rows.value_block(block + b)[run.first_row..][..run.len];
        }
        let mut row_weights: [&[f32]; H] = [&[]; H];
        for head in 0..H {
            row_weights[head] = &weights[head][run.first..][..run.len];
        }
        if E::IS_SCALED {
            for b in 0..B {
                let from = &run.rows.value_scales(block + b)[run.first_row..][..run.len];
                widen(v, from, &mut scales[b][..run.len]);
            }
        }
        for row in 0..run.len {
            for b in 0..B {
                prefetch_row(v, &rows[b][row]);
            }
            let mut values = [[v.splat(0.0); N]; B];
            for b in 0..B {
                for n in 0..N {
                    let dim = dim + n * V::LANES;
                    values[b][n] = E::load(v, &rows[b][row][dim..dim + V::LANES]);
                    if E::IS_SCALED {
                        values[b][n] = v.mul(values[b][n], v.splat(scales[b][row]));
                    }
                }
            }
            for head in 0..H {
                let weight = v.splat(row_weights[head][row]);
                for b in 0..B {
                    for n in 0..N {
                        sums[head][b][n] = v.fma(weight, values[b][n], sums[head][b][n]);
                    }
                }
            }
        }
    }
    let len = partial_len(head_dim);
    for head in 0..H {
        for b in 0..B {
            for n in 0..N {
                let dim = (block + b) * DIM_BLOCK + dim + n * V::LANES;
                v.store(sums[head][b][n], &mut partials[head * len + dim..][..V::LANES]);
            }
        }
    }
}

/// The sums of `H` heads for one vector from dimension `dim` on, beyond the last whole block.
#[inline(always)]
fn rest<V: Vectors, E: CacheElement, const H: usize>(
    v: V,
    head_dim: usize,
    runs: &[Option<Run<'_, E>>],
    dim: usize,
    weights: &Scores,
    partials: &mut [f32],
) {
    let mut sums = [v.splat(0.0); H];
    for run in runs.iter().flatten() {
        let (rows, width) = run.rows.value_rest();
        let rows = &rows[run.first_row * width + dim % DIM_BLOCK..];
        for row in 0..run.len {
            let values = E::load(v, &rows[row * width..][..V::LANES]);
            for head in 0..H {
                let weight = v.splat(weights[head][run.first + row]);
                sums[head] = v.fma(weight, values, sums[head]);
            }
        }
    }
    let (len, lanes) = (partial_len(head_dim), V::LANES.min(head_dim - dim));
    for head in 0..H {
        v.store_partial(sums[head], &mut partials[head * len + dim..][..lanes]);
    }
}

/// The scales of a run of positions as `f32`.
#[inline(always)]
fn widen<V: Vectors>(v: V, from: &[f16], to: &mut [f32]) {
    for (from, to) in from.chunks(V::LANES).zip(to.chunks_mut(V::LANES)) {
        let mut whole = [0; MAX_LANES];
        whole[..from.len()].copy_from_slice(bytemuck::must_cast_slice(from));
        v.store_partial(v.load_f16(&whole), to);
    }
}
