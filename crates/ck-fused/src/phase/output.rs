//! Rows of the O projection, bias and residual.

use super::product;
use crate::LayerError;
use crate::error::check_finite;
use crate::scratch::Member;
use crate::step::Step;
use ck_ops::CacheElement;
use ck_threadpool::{SharedSlice, Team};

/// Computes the member's rows of the output: the product, then the bias, then the residual.
///
/// The member's `attn_activations` are set. `residual` is whole; the rows' part of it is taken here.
pub(crate) fn output<E: CacheElement>(
    team: &Team<'_>,
    step: Step<'_, E>,
    me: &Member<E>,
    residual: Option<&[f32]>,
    output: &SharedSlice<'_, f32>,
) -> Result<(), LayerError> {
    let (rows, out) = (output.range(team), output.part(team));
    let projection = &step.layer.weights().o;
    product(step.isa, projection, &me.attn_activations, rows.clone(), out)?;
    match residual {
        Some(residual) => add_residual(&residual[rows], out),
        None => Ok(()),
    }
}

/// Adds the residual of some rows to them.
pub(crate) fn add_residual(residual: &[f32], out: &mut [f32]) -> Result<(), LayerError> {
    for (y, residual) in out.iter_mut().zip(residual) {
        *y += residual;
    }
    check_finite("output", out)
}
