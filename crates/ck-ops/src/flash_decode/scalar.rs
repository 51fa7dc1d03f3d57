//! Attention over one chunk as plain code: the definition.

use super::context::ChunkView;
use super::scratch::{ScoreRow, Work};
use super::{PARTS, Partial, partial_len};
use crate::CacheElement;
use crate::exp::{exp, tanh};
use crate::halves::by_halves;
use crate::kv_cache::{DIM_BLOCK, HeadSegment, PANEL};
use ck_isa::fma;
use half::f16;

/// Computes the partial result of every head of `q`; false if a score is not finite.
pub(super) fn attend<E: CacheElement>(
    view: &ChunkView<'_, E>,
    q: &[f32],
    work: &mut Work<'_>,
    partials: &mut [f32],
) -> bool {
    let head_dim = view.head_dim;
    let scores = &mut work.scores[0];
    let heads = q.chunks_exact(head_dim).zip(partials.chunks_exact_mut(partial_len(head_dim)));
    for (q, partial) in heads {
        self::scores(view, q, scores);
        if !view.visible.positions().all(|i| scores[i].is_finite()) {
            return false;
        }
        if let Some(soft_cap) = view.soft_cap {
            for i in view.visible.positions() {
                scores[i] = soft_cap * tanh(scores[i] / soft_cap);
            }
        }
        let (max, sum) = softmax(view, scores);
        partial[Partial::max(head_dim)] = max;
        partial[Partial::sum(head_dim)] = sum;
        weighted_sum(view, scores, &mut partial[..head_dim]);
    }
    true
}

/// The scaled scores of one query head at every visible position; what else `scores` holds means nothing.
pub(super) fn scores<E: CacheElement>(view: &ChunkView<'_, E>, q: &[f32], scores: &mut ScoreRow) {
    let mut last_panel = None;
    for i in view.visible.positions() {
        let (segment, index) = view.segment_of(i);
        let (lane, first) = (index % PANEL, i - index % PANEL);
        // A panel's lanes are computed together; those that are not visible are overwritten or not read.
        if last_panel != Some(first) {
            let products = dot_panel(&segment, index / PANEL, q);
            for (score, product) in scores[first..].iter_mut().zip(products) {
                *score = product * view.scale;
            }
            last_panel = Some(first);
        }
        debug_assert_eq!(first + lane, i);
    }
}

/// The products of `q` with the keys of a panel: each from zero, by sequential `fma` over the head dimension.
fn dot_panel<E: CacheElement>(
    segment: &HeadSegment<'_, E>,
    panel: usize,
    q: &[f32],
) -> [f32; PANEL] {
    let mut sums = [0.0; PANEL];
    let scales = segment.panel_scales(panel);
    for (d, (&q, keys)) in q.iter().zip(segment.panel(panel)).enumerate() {
        let scales = if E::IS_SCALED { scales[d / DIM_BLOCK] } else { [f16::ONE; PANEL] };
        for ((sum, key), scale) in sums.iter_mut().zip(keys).zip(scales) {
            *sum = fma(q, key.widen(scale), *sum);
        }
    }
    sums
}

/// The largest score and the sum of the weights. The visible scores become weights, `exp(score - largest)`.
///
/// Both are made of 16 strided parts, position `i` of the chunk in part `i % PARTS`, combined by halves. `a > b ? a
/// : b` is the larger of two. A largest score of zero is a positive one.
fn softmax<E: CacheElement>(view: &ChunkView<'_, E>, scores: &mut ScoreRow) -> (f32, f32) {
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let mut max = [f32::NEG_INFINITY; PARTS];
    for i in view.visible.positions() {
        max[i % PARTS] = larger(max[i % PARTS], scores[i]);
    }
    // Which of two zeros is the larger depends on where a level looks; plus zero there is one.
    let max = by_halves(&mut max, larger) + 0.0;
    let mut sum = [0.0; PARTS];
    for i in view.visible.positions() {
        scores[i] = exp(scores[i] - max);
        sum[i % PARTS] += scores[i];
    }
    (max, by_halves(&mut sum, |a, b| a + b))
}

/// The sum of the values by their weights: each dimension from zero, by sequential `fma` over the positions.
fn weighted_sum<E: CacheElement>(view: &ChunkView<'_, E>, weights: &ScoreRow, sums: &mut [f32]) {
    sums.fill(0.0);
    for i in view.visible.positions() {
        let (segment, index) = view.segment_of(i);
        for (sums, (piece, scale)) in sums.chunks_mut(DIM_BLOCK).zip(segment.value_pieces(index)) {
            for (sum, value) in sums.iter_mut().zip(piece) {
                *sum = fma(weights[i], value.widen(scale), *sum);
            }
        }
    }
}

/// Adds the next chunk's `partial` to `total`.
pub(super) fn fold(head_dim: usize, total: &mut [f32], partial: &[f32]) {
    let (max, sum) = (Partial::max(head_dim), Partial::sum(head_dim));
    let larger = if total[max] > partial[max] { total[max] } else { partial[max] };
    let (ours, theirs) = (exp(total[max] - larger), exp(partial[max] - larger));
    total[max] = larger;
    total[sum] = fma(total[sum], ours, partial[sum] * theirs);
    for (total, &partial) in total[..head_dim].iter_mut().zip(partial) {
        *total = fma(*total, ours, partial * theirs);
    }
}

/// Divides the weighted sum of the values by the sum of the weights.
pub(super) fn finish(total: &[f32], out: &mut [f32]) {
    let sum = total[Partial::sum(out.len())];
    for (out, &value) in out.iter_mut().zip(total) {
        *out = value / sum;
    }
}
