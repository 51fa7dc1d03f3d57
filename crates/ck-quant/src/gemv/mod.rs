//! Matrix times vector over a range of rows: the level is matched here, once per range.

pub(crate) mod scalar;

use crate::matrix::Blocks;
use crate::{Isa, Matrix, QuantizedVector};
use std::ops::Range;

/// Writes the products of `rows` to `out`. The caller has checked all lengths.
pub(crate) fn rows(
    _isa: Isa,
    matrix: &Matrix<'_>,
    activations: &QuantizedVector,
    rows: Range<usize>,
    out: &mut [f32],
) {
    let per_row = activations.quants().len();
    let blocks = rows.start * per_row..rows.end * per_row;
    match matrix.blocks() {
        Blocks::Q5_0(all) => scalar::rows(&all[blocks], activations, out),
        Blocks::Q8_0(all) => scalar::rows(&all[blocks], activations, out),
    }
}
