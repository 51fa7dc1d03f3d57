//! Q8_0: 32 elements as one f16 scale and 32 signed bytes, in 34 bytes.

mod block;
mod panel;
mod quantize;
#[cfg(test)]
mod tests;

pub use block::BlockQ8_0;
pub(crate) use panel::PanelQ8_0;
pub(crate) use quantize::{TOO_LARGE, check, quantize_block};
pub use quantize::{dequantize_row, quantize_row};

use crate::block::check_scales;
use crate::{QuantError, QuantizedVector, gemv};

/// The dot product of a Q8_0 row with quantized activations:
/// `acc = fma(scale * activation_scale, integer_dot as f32, acc)` over the blocks in order, from 0.
///
/// # Errors
///
/// [`QuantError::Length`] where the row and the activations differ in length, [`QuantError::BlockScale`] for a
/// scale that is not finite.
pub fn vec_dot(row: &[BlockQ8_0], activations: &QuantizedVector) -> Result<f32, QuantError> {
    activations.check_blocks(row.len())?;
    check_scales(row, row.len())?;
    Ok(gemv::rows::scalar::row_dot(row, activations.view()))
}
