//! Dot products in plain Rust: the definition that every other level must agree with.

use crate::block::Block;
use crate::{BLOCK_LEN, QuantizedVector};
use ck_isa::fma;

/// The exact integer dot product of a block with a block of quantized activations.
///
/// The largest magnitude is 32 * 128 * 128, far inside `i32`.
#[inline(always)]
pub(crate) fn block_dot<B: Block>(block: &B, activations: &[i8; BLOCK_LEN]) -> i32 {
    let products = block.quants().into_iter().zip(*activations);
    products.map(|(w, a)| i32::from(w) * i32::from(a)).sum()
}

/// The dot product of a row with as many blocks of activations, block after block.
pub(crate) fn row_dot<B: Block>(row: &[B], activations: &QuantizedVector) -> f32 {
    row.iter().zip(activations.blocks()).fold(0.0, |acc, (block, (scale, quants))| {
        fma(block.scale().to_f32() * scale, block_dot(block, quants) as f32, acc)
    })
}

/// The dot products of consecutive rows. `out` has one element for each.
pub(crate) fn rows<B: Block>(blocks: &[B], activations: &QuantizedVector, out: &mut [f32]) {
    let per_row = activations.quants().len();
    for (row, y) in out.iter_mut().enumerate() {
        *y = row_dot(&blocks[row * per_row..(row + 1) * per_row], activations);
    }
}
