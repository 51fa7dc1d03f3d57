//! RMSNorm of the input and its quantization.

use crate::{LayerError, Norm};
use ck_ops::rms_norm;
use ck_quant::{Isa, QuantizedVector};

/// Normalizes `input` into `normed` and quantizes that into `activations`.
pub(crate) fn norm(
    isa: Isa,
    weights: &Norm<'_>,
    input: &[f32],
    normed: &mut [f32],
    activations: &mut QuantizedVector,
) -> Result<(), LayerError> {
    rms_norm(isa, input, &weights.gamma, weights.eps, normed)?;
    activations.quantize(isa, normed)?;
    Ok(())
}
