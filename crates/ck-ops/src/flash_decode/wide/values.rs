//! The sums of the values by their weights. Lanes are head dimensions.
//!
//! ```text
//! for each block of head dimensions, for each visible position in order:
//!     values = the block's elements of that row
//!     for each query head: sums[head] = fma(weight[head][position], values, sums[head])
//! ```
//!
//! 1. Every sum is one lane of one register and is added to in the order of the positions: the scalar order.
//! 2. As with the scores, heads times vectors is the number of independent sums, and a vector of values is
//!    loaded and widened once for all heads.
//! 3. The last vector of a row may reach into what follows it. Those lanes are dimensions that do not exist; they
//!    are not stored.

use crate::CacheElement;
use crate::flash_decode::context::{ChunkView, Run};
use crate::flash_decode::partial_len;
use crate::flash_decode::scratch::Scores;
use ck_isa::Vectors;

/// Writes the weighted sums of every head of `partials`, from weights in the first rows of `weights`.
#[inline(always)]
pub(super) fn weighted_sums<V: Vectors, E: CacheElement>(
    v: V,
    view: &ChunkView<'_, E>,
    weights: &Scores,
    partials: &mut [f32],
) {
    match (V::LANES, partials.len() / partial_len(view.head_dim)) {
        (16, 1) => heads::<V, E, 1, 8>(v, view, weights, partials),
        (16, 2) => heads::<V, E, 2, 4>(v, view, weights, partials),
        (16, 3) => heads::<V, E, 3, 4>(v, view, weights, partials),
        (16, 4) => heads::<V, E, 4, 4>(v, view, weights, partials),
        (16, 5) => heads::<V, E, 5, 2>(v, view, weights, partials),
        (16, 6) => heads::<V, E, 6, 2>(v, view, weights, partials),
        (16, 7) => heads::<V, E, 7, 2>(v, view, weights, partials),
        (16, 8) => heads::<V, E, 8, 2>(v, view, weights, partials),
        (8, 1) => heads::<V, E, 1, 8>(v, view, weights, partials),
        (8, 2) => heads::<V, E, 2, 4>(v, view, weights, partials),
        (8, 3) => heads::<V, E, 3, 2>(v, view, weights, partials),
        (8, 4) => heads::<V, E, 4, 2>(v, view, weights, partials),
        (4, 1) => heads::<V, E, 1, 8>(v, view, weights, partials),
        (4, 2) => heads::<V, E, 2, 8>(v, view, weights, partials),
        (4, 3) => heads::<V, E, 3, 4>(v, view, weights, partials),
        (4, 4) => heads::<V, E, 4, 4>(v, view, weights, partials),
        (lanes, heads) => unreachable!("{heads} heads at once with {lanes} lanes"),
    }
}

/// The sums of `H` heads, by blocks of `N` vectors, then by single ones.
#[inline(always)]
fn heads<V: Vectors, E: CacheElement, const H: usize, const N: usize>(
    v: V,
    view: &ChunkView<'_, E>,
    weights: &Scores,
    partials: &mut [f32],
) {
    let runs = view.runs();
    let mut dim = 0;
    while dim + N * V::LANES <= view.head_dim {
        block::<V, E, H, N>(v, view.head_dim, &runs, dim, weights, partials);
        dim += N * V::LANES;
    }
    while dim < view.head_dim {
        block::<V, E, H, 1>(v, view.head_dim, &runs, dim, weights, partials);
        dim += V::LANES;
    }
}

/// The sums of `H` heads for `N` vectors of head dimensions from `dim` on.
#[inline(always)]
fn block<V: Vectors, E: CacheElement, const H: usize, const N: usize>(
    v: V,
    head_dim: usize,
    runs: &[Option<Run<'_, E>>],
    dim: usize,
    weights: &Scores,
    partials: &mut [f32],
) {
    let mut sums = [[v.splat(0.0); N]; H];
    for run in runs.iter().flatten() {
        let weights: [&[f32]; H] =
            std::array::from_fn(|head| &weights[head][run.first..][..run.len]);
        #[allow(clippy::needless_range_loop, reason = "the row counts through several slices")]
        for row in 0..run.len {
            let start = (run.first_row + row) * head_dim + dim;
            let row_values = &run.rows.values[start..start + N * V::LANES];
            let mut values = [v.splat(0.0); N];
            for n in 0..N {
                values[n] = E::load(v, &row_values[n * V::LANES..]);
            }
            for head in 0..H {
                let weight = v.splat(weights[head][row]);
                for n in 0..N {
                    sums[head][n] = v.fma(weight, values[n], sums[head][n]);
                }
            }
        }
    }
    for (sums, partial) in sums.into_iter().zip(partials.chunks_exact_mut(partial_len(head_dim))) {
        for (sum, to) in sums.into_iter().zip(partial[dim..head_dim].chunks_mut(V::LANES)) {
            v.store_partial(sum, to);
        }
    }
}
