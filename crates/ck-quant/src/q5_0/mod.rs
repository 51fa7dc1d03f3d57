//! Q5_0: 32 elements as one f16 scale and 32 quants of 5 bits, in 22 bytes.

mod block;
mod panel;
mod quantize;
#[cfg(test)]
mod tests;

pub use block::BlockQ5_0;
pub(crate) use panel::PanelQ5_0;
pub use quantize::{dequantize_row, quantize_row};

use crate::block::check_scales;
use crate::{QuantError, QuantizedVector, gemv};

/// The dot product of a Q5_0 row with quantized activations:
/// `acc = fma(scale * activation_scale, integer_dot as f32, acc)` over the blocks in order, from 0.
///
/// # Errors
///
/// [`QuantError::Length`] where the row and the activations differ in length, [`QuantError::BlockScale`] for a
/// scale that is not finite.
pub fn vec_dot(row: &[BlockQ5_0], activations: &QuantizedVector) -> Result<f32, QuantError> {
    activations.check_blocks(row.len())?;
    check_scales(row, row.len())?;
    Ok(gemv::rows::scalar::row_dot(row, activations.view()))
}
