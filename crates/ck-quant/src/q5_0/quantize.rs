//! From floats to Q5_0 blocks and back.

use crate::{BLOCK_LEN, BlockQ5_0, QuantError, block};
use half::f16;

/// The smallest magnitude whose block would have a scale that rounds to infinity in f16: 16 times 65520,
/// the midpoint between the largest f16 and the power of two above it.
const TOO_LARGE: f32 = 16.0 * 65520.0;

/// The stored form of zero: the fifth bit alone, which is the offset.
const STORED_ZERO: u8 = BlockQ5_0::OFFSET as u8;

/// Quantizes a row to Q5_0: per block of 32, `d = extreme / -16` where `extreme` is the value of largest
/// magnitude, the first of equals; `stored = min(31, trunc(x * (1 / d) + 16.5))`, with `1 / d` taken before
/// `d` is rounded to f16, ties to even.
///
/// The extreme value itself is stored as 0 and comes back exactly, but for the rounding of the scale. A
/// block whose scale rounds to zero is all zero: scale -0, as `0 / -16` gives it, and every stored value 16.
///
/// # Errors
///
/// A length that is no multiple of 32 or does not go with `blocks`; a number that is not finite or too
/// large for an f16 scale. `blocks` is then as it was.
pub fn quantize_row(values: &[f32], blocks: &mut [BlockQ5_0]) -> Result<(), QuantError> {
    let values = block::whole_blocks(values, blocks.len())?;
    check(values.as_flattened())?;
    for (values, block) in values.iter().zip(blocks) {
        *block = quantize_block(values);
    }
    Ok(())
}

fn check(values: &[f32]) -> Result<(), QuantError> {
    let wrong = |x: &f32| x.is_nan() || x.abs() >= TOO_LARGE;
    match values.iter().position(wrong) {
        None => Ok(()),
        Some(index) if values[index].is_finite() => {
            Err(QuantError::ScaleOverflow { index, value: values[index] })
        }
        Some(index) => Err(QuantError::NotFinite { index, value: values[index] }),
    }
}

/// Quantizes one block. The values have passed [`check`].
fn quantize_block(values: &[f32; BLOCK_LEN]) -> BlockQ5_0 {
    let first_extreme = |extreme: f32, x: &f32| if x.abs() > extreme.abs() { *x } else { extreme };
    let extreme = values.iter().fold(0f32, first_extreme);
    let d = extreme / -16.0;
    let scale = f16::from_f32(d);
    if scale.to_f32() == 0.0 {
        return BlockQ5_0::new(f16::NEG_ZERO, [STORED_ZERO; BLOCK_LEN]);
    }
    let inverse = 1.0 / d;
    BlockQ5_0::new(scale, values.map(|x| ((x * inverse + 16.5) as u8).min(31)))
}

/// The values of a row of blocks.
///
/// # Errors
///
/// [`QuantError::Length`] where `values` is not 32 times as long as `blocks`, [`QuantError::BlockScale`] for a
/// scale that is not finite. `values` is then as it was.
pub fn dequantize_row(blocks: &[BlockQ5_0], values: &mut [f32]) -> Result<(), QuantError> {
    block::dequantize(blocks, values)
}
