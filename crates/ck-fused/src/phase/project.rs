//! Rows of the Q, K and V projections with their biases.

use crate::error::check_finite;
use crate::scratch::{Member, Shared};
use crate::step::Step;
use crate::{LayerError, Projection};
use ck_ops::CacheElement;
use ck_quant::{Isa, QuantizedVector};
use ck_threadpool::Team;
use std::ops::Range;

/// Computes the member's rows of Q, K and V. They are not normalized by head or rotated yet.
///
/// A unit is a panel of 16 rows, dealt over all three projections, so that the members' shares differ by at
/// most one panel. Units need not keep the pairs of a rotation together, since whoever attends rotates.
pub(crate) fn project<E: CacheElement>(
    team: &Team<'_>,
    step: Step<'_, E>,
    shared: &Shared<'_, E>,
    me: &Member<E>,
) -> Result<(), LayerError> {
    let weights = step.layer.weights();
    for (projection, out) in
        [(&weights.q, &shared.q), (&weights.k, &shared.k), (&weights.v, &shared.v)]
    {
        product(step.isa, projection, &me.activations, out.range(team), out.part(team))?;
    }
    Ok(())
}

/// `out = weights * activations + bias` for `rows` of one projection.
pub(crate) fn product(
    isa: Isa,
    projection: &Projection<'_>,
    activations: &QuantizedVector,
    rows: Range<usize>,
    out: &mut [f32],
) -> Result<(), LayerError> {
    projection.weights().gemv(isa, activations, rows.clone(), out)?;
    add_bias(projection, rows, out)
}

/// Adds the biases of `rows`, if the projection has any, to their products.
pub(crate) fn add_bias(
    projection: &Projection<'_>,
    rows: Range<usize>,
    out: &mut [f32],
) -> Result<(), LayerError> {
    if let Some(bias) = &projection.bias {
        for (y, bias) in out.iter_mut().zip(&bias[rows]) {
            *y += bias;
        }
        check_finite("projection with bias", out)?;
    }
    Ok(())
}
