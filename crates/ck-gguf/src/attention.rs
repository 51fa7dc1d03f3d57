//! What a file says of the scores: their scale, their soft cap, and which positions have one.

use crate::error::Error;
use crate::settings::{Architecture, Settings, Windows};
use ck_fused::LayerShape;
use ck_ops::{Attention, OpError};

const SCALE: &str = "attention.scale";
const SOFT_CAP: &str = "attn_logit_softcapping";
const WINDOW: &str = "attention.sliding_window";
const PERIOD: &str = "attention.sliding_window_pattern";

/// The soft cap of Gemma 2 where a file has none, as in llama.cpp.
const GEMMA2_SOFT_CAP: f32 = 50.0;

/// Reads the attention of a layer that attends to `window` positions, or to all.
pub(crate) fn read(
    settings: &Settings<'_, '_>,
    (layer, window): (usize, Option<usize>),
    shape: &LayerShape,
) -> Result<Attention, Error> {
    refuse_changes(settings)?;
    let unusable = |source: OpError| Error::Layer { layer, source: source.into() };
    let mut attention = shape.attention().map_err(|source| Error::Layer { layer, source })?;
    if let Some(scale) = scale(settings, shape)? {
        attention = attention.with_scale(scale).map_err(unusable)?;
    }
    if let Some(soft_cap) = soft_cap(settings)? {
        attention = attention.with_soft_cap(soft_cap).map_err(unusable)?;
    }
    match window {
        Some(window) => attention.with_window(window).map_err(unusable),
        None => Ok(attention),
    }
}

/// The window of a layer, or none where it attends to everything.
pub(crate) fn window(settings: &Settings<'_, '_>, layer: usize) -> Result<Option<usize>, Error> {
    let Some(Windows { period, len, .. }) = settings.architecture.windows() else {
        // Some files name a window, but not which of their layers have it.
        return match settings.nonzero::<f64>(WINDOW)? {
            Some(_) => Err(settings.unsupported(WINDOW, "a sliding window of unknown layers")),
            None => Ok(None),
        };
    };
    let len = settings.get(WINDOW)?.unwrap_or(len);
    let period = settings.get(PERIOD)?.unwrap_or(period);
    // No period means that there is no turn of a layer that attends to everything.
    let slides = period == 0 || layer % period < period - 1;
    Ok((slides && len > 0).then_some(len))
}

/// The scale of the scores where it is not the default, `1 / sqrt(head_dim)`.
fn scale(settings: &Settings<'_, '_>, shape: &LayerShape) -> Result<Option<f32>, Error> {
    if let Some(scale) = settings.nonzero::<f32>(SCALE)? {
        return Ok(Some(scale));
    }
    let Some(windows) = settings.architecture.windows() else { return Ok(None) };
    let layers: usize = settings.require("block_count")?;
    let per_head = shape.embed_dim() / shape.n_heads();
    Ok((layers == windows.layers_of_largest).then(|| (1.0 / (per_head as f64).sqrt()) as f32))
}

fn soft_cap(settings: &Settings<'_, '_>) -> Result<Option<f32>, Error> {
    if settings.get::<f32>(SOFT_CAP)?.is_none() && settings.architecture == Architecture::Gemma2 {
        return Ok(Some(GEMMA2_SOFT_CAP));
    }
    settings.nonzero(SOFT_CAP)
}

/// Fails if a key asks for something that the layer does not do.
fn refuse_changes(settings: &Settings<'_, '_>) -> Result<(), Error> {
    const CLAMP: &str = "attention.clamp_kqv";
    const CAUSAL: &str = "attention.causal";
    if settings.nonzero::<f64>(CLAMP)?.is_some() {
        return Err(settings.unsupported(CLAMP, "clamped projections"));
    }
    if settings.get(CAUSAL)? == Some(false) {
        return Err(settings.unsupported(CAUSAL, "attention to later positions"));
    }
    Ok(())
}
