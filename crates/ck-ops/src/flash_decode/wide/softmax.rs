//! Scores become weights. Lanes are positions, so that lane `i % LANES` of a panel's vectors is part `i % 16` of the
//! scalar code.
//!
//! 1. Positions of a panel that are not visible first take the score of one that is, which changes neither
//!    the maximum nor whether all are finite; then minus infinity, of which `exp` makes a weight of zero, and adding
//!    zero changes no sum. So whole vectors are computed, and the rare gap is filled by scalar code.
//! 2. Nothing here needs memory, so it is told of the lines that come after this chunk, one for every vector.
//! 3. `score * 0` is zero, or NaN if the score is not finite: one multiply-add per vector remembers it.

use crate::CacheElement;
use crate::exp::wide::{exp, tanh};
use crate::flash_decode::PARTS;
use crate::flash_decode::context::ChunkView;
use crate::flash_decode::scratch::ScoreRow;
use crate::flash_decode::visible::Visible;
use crate::halves::by_halves;
use ck_isa::Vectors;
use std::ops::Range;
use std::slice::Chunks;

/// Lanes of the narrowest level.
const MIN_LANES: usize = 4;

/// Where the visible positions of a chunk are: the same for every head.
pub(super) struct Edges {
    /// The first of them.
    first: usize,
    /// The positions that are computed.
    spans: [Range<usize>; 2],
    /// The positions there that are not visible.
    gaps: [Range<usize>; 3],
}

impl Edges {
    pub(super) fn of(visible: &Visible) -> Self {
        Self { first: visible.first(), spans: visible.spans(), gaps: visible.gaps() }
    }
}

/// Scales one head's scores and makes weights of them; the largest score and the sum of the weights, or nothing if
/// a visible score is not finite.
#[inline(always)]
pub(super) fn softmax<V: Vectors, E: CacheElement>(
    v: V,
    view: &ChunkView<'_, E>,
    edges: &Edges,
    scores: &mut ScoreRow,
    coming: &mut Chunks<'_, E>,
) -> Option<(f32, f32)> {
    let visible = scores[edges.first];
    for gap in edges.gaps.clone() {
        scores[gap].fill(visible);
    }
    let parts = PARTS / V::LANES;
    let zero = v.splat(0.0);
    let mut not_finite = zero;
    let mut max = [v.splat(f32::NEG_INFINITY); PARTS / MIN_LANES];
    for rows in edges.spans.clone() {
        for (row, i) in scores[rows].chunks_exact_mut(V::LANES).zip(0..) {
            let mut score = v.mul(v.load(row), v.splat(view.scale));
            not_finite = v.fma(score, zero, not_finite);
            if let Some(soft_cap) = view.soft_cap {
                let soft_cap = v.splat(soft_cap);
                score = v.mul(soft_cap, tanh(v, v.div(score, soft_cap)));
            }
            v.store(score, row);
            max[i % parts] = v.max(max[i % parts], score);
        }
    }
    if !v.sum_lanes(not_finite).is_finite() {
        return None;
    }
    let max = v.max_lanes(by_halves(&mut max[..parts], |a, b| v.max(a, b))) + 0.0;

    for gap in edges.gaps.clone() {
        scores[gap].fill(f32::NEG_INFINITY);
    }
    let mut sum = [zero; PARTS / MIN_LANES];
    for rows in edges.spans.clone() {
        for (row, i) in scores[rows].chunks_exact_mut(V::LANES).zip(0..) {
            if let Some(line) = coming.next() {
                v.prefetch(line.as_ptr());
            }
            let weight = exp(v, v.sub(v.load(row), v.splat(max)));
            v.store(weight, row);
            sum[i % parts] = v.add(sum[i % parts], weight);
        }
    }
    Some((max, v.sum_lanes(by_halves(&mut sum[..parts], |a, b| v.add(a, b)))))
}
