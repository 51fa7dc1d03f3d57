//! Scores become weights. Lanes are positions, so that lane `i % LANES` of a panel's vectors is part `i % 16` of the
//! scalar code.
//!
//! 1. Positions of a panel that are not visible first take the score of one that is, which changes neither
//!    the maximum nor whether all are finite; then minus infinity, of which `exp` makes a weight of zero, and adding
//!    zero changes no sum. So whole vectors are computed, and the rare gap is filled by scalar code.
//! 2. `score * 0` is zero, or NaN if the score is not finite: one multiply-add per vector remembers it.

use crate::CacheElement;
use crate::exp::wide::{exp, tanh};
use crate::flash_decode::context::ChunkView;
use crate::flash_decode::scratch::ScoreRow;
use crate::halves::by_halves;
use crate::kv_cache::PANEL;
use ck_isa::Vectors;

/// Scales one head's scores and makes weights of them; the largest score and the sum of the weights, or nothing if
/// a visible score is not finite.
#[inline(always)]
pub(super) fn softmax<V: Vectors, E: CacheElement>(
    v: V,
    view: &ChunkView<'_, E>,
    scores: &mut ScoreRow,
) -> Option<(f32, f32)> {
    let panels = view.visible.panels();
    let gaps = view.visible.gaps();
    let visible = scores[view.visible.positions().next()?];
    for gap in gaps.clone() {
        scores[gap].fill(visible);
    }

    let zero = v.splat(0.0);
    let mut not_finite = zero;
    let mut max = [v.splat(f32::NEG_INFINITY); 4];
    for panel in panels.clone().into_iter().flatten() {
        let panel = &mut scores[panel * PANEL..][..PANEL];
        for (part, row) in panel.chunks_exact_mut(V::LANES).enumerate() {
            let mut score = v.mul(v.load(row), v.splat(view.scale));
            not_finite = v.fma(score, zero, not_finite);
            if let Some(soft_cap) = view.soft_cap {
                let soft_cap = v.splat(soft_cap);
                score = v.mul(soft_cap, tanh(v, v.div(score, soft_cap)));
            }
            v.store(score, row);
            max[part] = v.max(max[part], score);
        }
    }
    if to_parts(v, [not_finite; 4]).into_iter().any(f32::is_nan) {
        return None;
    }
    let max = by_halves(to_parts(v, max), |a, b| if a > b { a } else { b });

    for gap in gaps {
        scores[gap].fill(f32::NEG_INFINITY);
    }
    let mut sum = [zero; 4];
    for panel in panels.into_iter().flatten() {
        let panel = &mut scores[panel * PANEL..][..PANEL];
        for (part, row) in panel.chunks_exact_mut(V::LANES).enumerate() {
            let weight = exp(v, v.sub(v.load(row), v.splat(max)));
            v.store(weight, row);
            sum[part] = v.add(sum[part], weight);
        }
    }
    Some((max, by_halves(to_parts(v, sum), |a, b| a + b)))
}

/// The 16 parts: of one vector, of two, or of four.
#[inline(always)]
fn to_parts<V: Vectors>(v: V, vectors: [V::F32; 4]) -> [f32; PANEL] {
    let mut parts = [0.0; PANEL];
    for (parts, vector) in parts.chunks_exact_mut(V::LANES).zip(vectors) {
        v.store(vector, parts);
    }
    parts
}
