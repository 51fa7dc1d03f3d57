//! RMSNorm of the input and its quantization.

use crate::LayerError;
use crate::scratch::Member;
use crate::step::Step;
use ck_ops::{CacheElement, rms_norm};

/// Normalizes `input` and quantizes the result, into the member's own memory.
///
/// Every member does this for itself: it is less work than handing the result over.
pub(crate) fn norm<E: CacheElement>(
    step: Step<'_, E>,
    input: &[f32],
    me: &mut Member<E>,
) -> Result<(), LayerError> {
    let norm = &step.layer.weights().norm;
    rms_norm(step.isa, input, &norm.gamma, norm.eps, &mut me.normed)?;
    me.activations.quantize(step.isa, &me.normed)?;
    Ok(())
}
