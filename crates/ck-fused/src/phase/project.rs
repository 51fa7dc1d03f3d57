//! Rows of the Q, K and V projections with their biases, and the rotation of Q and K.

use crate::error::check_finite;
use crate::{LayerError, LayerWeights, Projection};
use ck_ops::RopeTable;
use ck_quant::{Isa, QuantizedVector};
use std::ops::Range;

/// Computes `rows` of the stacked projections Q, K, V into `out`, bias included.
///
/// Row 0 is Q's first; K's rows follow Q's, V's follow K's.
pub(crate) fn project(
    isa: Isa,
    weights: &LayerWeights<'_>,
    activations: &QuantizedVector,
    rows: Range<usize>,
    out: &mut [f32],
) -> Result<(), LayerError> {
    let mut first = 0;
    let mut rest = out;
    for projection in [&weights.q, &weights.k, &weights.v] {
        let end = first + projection.weights.rows();
        let start = rows.start.clamp(first, end);
        let part = start - first..rows.end.clamp(start, end) - first;
        let (out, after) = rest.split_at_mut(part.len());
        product(isa, projection, activations, part, out)?;
        (rest, first) = (after, end);
    }
    Ok(())
}

/// `out = weights * activations + bias` for `rows` of one projection.
pub(super) fn product(
    isa: Isa,
    projection: &Projection<'_>,
    activations: &QuantizedVector,
    rows: Range<usize>,
    out: &mut [f32],
) -> Result<(), LayerError> {
    projection.weights.gemv(isa, activations, rows.clone(), out)?;
    if let Some(bias) = &projection.bias {
        for (y, bias) in out.iter_mut().zip(&bias[rows]) {
            *y += bias;
        }
    }
    check_finite("projection", out)
}

/// Rotates whole heads of Q or K to `position`, where the model rotates at all.
pub(crate) fn rotate(
    isa: Isa,
    rope: Option<&RopeTable>,
    position: usize,
    heads: &mut [f32],
) -> Result<(), LayerError> {
    if let Some(rope) = rope {
        rope.apply(isa, position, heads)?;
    }
    Ok(())
}
