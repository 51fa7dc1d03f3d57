//! From floats to Q8_0 blocks and back.

use crate::{BLOCK_LEN, BlockQ8_0, QuantError, block};
use half::f16;

/// The smallest magnitude whose block would have a scale that rounds to infinity in f16: 127 times
/// 65520, the midpoint between the largest f16 and the power of two above it.
pub(crate) const TOO_LARGE: f32 = 127.0 * 65520.0;

/// Checks that every value is finite and fits a block whose scale is f16.
///
/// The check is one maximum over the magnitudes, taken as integers: a NaN's bits are above those of
/// infinity, infinity's above those of every finite number.
pub(crate) fn check(values: &[f32]) -> Result<(), QuantError> {
    const MAGNITUDE: u32 = 0x7fff_ffff;
    let largest = values.iter().fold(0, |largest, x| largest.max(x.to_bits() & MAGNITUDE));
    if largest < TOO_LARGE.to_bits() {
        return Ok(());
    }
    let worst = values.iter().position(|x| x.to_bits() & MAGNITUDE >= TOO_LARGE.to_bits());
    let index = worst.unwrap_or_default();
    let value = values[index];
    Err(if value.is_finite() {
        QuantError::ScaleOverflow { index, value }
    } else {
        QuantError::NotFinite { index, value }
    })
}

/// Quantizes one block. The values have passed [`check`].
///
/// `scale = f16(amax / 127)`; `quants = round_ties_even(x * (127 / amax))`. A block whose stored scale is
/// zero is all zero.
#[inline(always)]
pub(crate) fn quantize_block(values: &[f32; BLOCK_LEN]) -> BlockQ8_0 {
    let amax = values.iter().fold(0f32, |amax, x| amax.max(x.abs()));
    let scale = f16::from_f32(amax / 127.0);
    if scale == f16::ZERO {
        return BlockQ8_0::default();
    }
    let inverse = 127.0 / amax;
    BlockQ8_0::new(scale, values.map(|x| (x * inverse).round_ties_even() as i8))
}

/// Quantizes a row to Q8_0: per block of 32, `scale = f16(amax / 127)`, ties to even, and
/// `quant = round_ties_even(x * (127 / amax))`.
///
/// A block whose scale rounds to zero becomes 34 zero bytes.
///
/// # Errors
///
/// A length that is no multiple of 32 or does not go with `blocks`; a number that is not finite or too
/// large for an f16 scale. `blocks` is then as it was.
pub fn quantize_row(values: &[f32], blocks: &mut [BlockQ8_0]) -> Result<(), QuantError> {
    let values = block::whole_blocks(values, blocks.len())?;
    check(values.as_flattened())?;
    for (values, block) in values.iter().zip(blocks) {
        *block = quantize_block(values);
    }
    Ok(())
}

/// The values of a row of blocks.
///
/// # Errors
///
/// [`QuantError::Length`] where `values` is not 32 times as long as `blocks`, [`QuantError::BlockScale`] for a
/// scale that is not finite. `values` is then as it was.
pub fn dequantize_row(blocks: &[BlockQ8_0], values: &mut [f32]) -> Result<(), QuantError> {
    block::dequantize(blocks, values)
}
