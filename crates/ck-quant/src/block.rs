//! What the block formats have in common.

use crate::{BLOCK_LEN, QuantError};
use half::f16;

/// A block of 32 elements: one f16 scale, and quants that fit a signed byte.
pub(crate) trait Block: bytemuck::Pod {
    /// The scale.
    fn scale(&self) -> f16;

    /// The quants in element order, without any offset.
    fn quants(&self) -> [i8; BLOCK_LEN];

    /// The block's first four bytes: the bits of the scale and two bytes of something else.
    ///
    /// A vector register takes four bytes from memory in one load that depends on nothing; two bytes
    /// would be inserted into what the register held.
    #[inline(always)]
    fn head(&self) -> &[u8; 4] {
        bytemuck::bytes_of(self).first_chunk().unwrap_or(&[0; 4])
    }
}

/// Writes the values of `blocks`, `scale * quant`, to `values`.
pub(crate) fn dequantize<B: Block>(blocks: &[B], values: &mut [f32]) -> Result<(), QuantError> {
    let values = whole_blocks_mut(values, blocks.len())?;
    check_scales(blocks, blocks.len())?;
    for (block, values) in blocks.iter().zip(values) {
        let scale = block.scale().to_f32();
        *values = block.quants().map(|quant| scale * f32::from(quant));
    }
    Ok(())
}

/// Checks that every scale is finite; `per_row` blocks make a row.
pub(crate) fn check_scales<B: Block>(blocks: &[B], per_row: usize) -> Result<(), QuantError> {
    match blocks.iter().position(|block| !block.scale().is_finite()) {
        None => Ok(()),
        Some(index) => Err(QuantError::BlockScale {
            row: index / per_row,
            block: index % per_row,
            scale: blocks[index].scale().to_f32(),
        }),
    }
}

/// `values` as exactly `blocks` blocks.
pub(crate) fn whole_blocks(
    values: &[f32],
    blocks: usize,
) -> Result<&[[f32; BLOCK_LEN]], QuantError> {
    check_len(values.len(), blocks)?;
    Ok(values.as_chunks().0)
}

/// `values` as exactly `blocks` blocks.
pub(crate) fn whole_blocks_mut(
    values: &mut [f32],
    blocks: usize,
) -> Result<&mut [[f32; BLOCK_LEN]], QuantError> {
    check_len(values.len(), blocks)?;
    Ok(values.as_chunks_mut().0)
}

fn check_len(len: usize, blocks: usize) -> Result<(), QuantError> {
    let expected = blocks.saturating_mul(BLOCK_LEN);
    if len == expected {
        Ok(())
    } else {
        Err(QuantError::Length { what: "values", expected, found: len })
    }
}
