//! Rows of the O projection, bias and residual.

use super::project::product;
use crate::error::check_finite;
use crate::{LayerError, Projection};
use ck_quant::{Isa, QuantizedVector};
use std::ops::Range;

/// Computes `rows` of the O projection into `out`: the product, then the bias, then the residual.
///
/// `residual` is whole; the rows' part of it is taken here.
pub(crate) fn output(
    isa: Isa,
    projection: &Projection<'_>,
    activations: &QuantizedVector,
    residual: Option<&[f32]>,
    rows: Range<usize>,
    out: &mut [f32],
) -> Result<(), LayerError> {
    product(isa, projection, activations, rows.clone(), out)?;
    if let Some(residual) = residual {
        for (y, residual) in out.iter_mut().zip(&residual[rows]) {
            *y += residual;
        }
        check_finite("output", out)?;
    }
    Ok(())
}
