//! The attention block of one decoder layer, with everything in it checked against the metadata.

use crate::error::Error;
use crate::file::GgufFile;
use crate::settings::Settings;
use crate::{attention, rope, weights};
use ck_fused::{DecodeLayer, LayerShape, Norm};
use ck_ops::RopeConfig;
use std::fmt;

/// The attention block of one layer, ready to decode, and how its queries and keys are rotated.
///
/// Every dimension was checked against the metadata; every scale, norm weight and bias is finite. The
/// matrices are borrowed from the file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AttentionLayer<'a> {
    /// The layer: its weights, and its attention with scale, soft cap and window.
    pub layer: DecodeLayer<'a>,
    /// The rotation of queries and keys, from which a [`RopeTable`](ck_ops::RopeTable) is made. In some models it
    /// differs between layers.
    pub rope: RopeConfig,
    /// Gemma's norm of what the block computes, before that is added to the hidden state. Where there is one, decode
    /// without a residual, apply [`rms_norm`](ck_ops::rms_norm), then add.
    pub post_norm: Option<Norm<'a>>,
    /// What was assumed because the file does not say it.
    pub warnings: Vec<Warning>,
}

/// Something that a file does not say and that was assumed; right for some models and wrong for others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The base of the rotation is absent, and [`DEFAULT_ROPE_BASE`](crate::DEFAULT_ROPE_BASE) was taken.
    DefaultRopeBase {
        /// The key that is absent.
        key: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DefaultRopeBase { key } => {
                write!(
                    f,
                    "metadata key {key:?} is missing: {} was assumed",
                    rope::DEFAULT_ROPE_BASE
                )
            }
        }
    }
}

impl<'a> AttentionLayer<'a> {
    /// Reads the attention block of layer `layer` of a `llama`, `qwen2`, `qwen3`, `gemma2` or `gemma3` file.
    ///
    /// The embedding and output tensors are not needed. What the file asks for beyond what the layer does (longrope,
    /// a window of unknown layers, any further `attn` tensor) is an error, since leaving it out
    /// would give wrong numbers.
    ///
    /// # Errors
    ///
    /// An [`Error`] naming the key or tensor that is missing, wrong, or not supported.
    pub fn read(file: &GgufFile<'a>, layer: usize) -> Result<Self, Error> {
        let settings = Settings::new(file.metadata())?;
        if let Some(layers) = settings.get("block_count")?.filter(|layers| layer >= *layers) {
            return Err(Error::NoSuchLayer { layer, layers });
        }
        let window = attention::window(&settings, layer)?;
        let shape = read_shape(file, &settings, layer)?;
        let norm_eps = settings.require::<f32>(EPSILON)?;
        if !norm_eps.is_finite() || norm_eps < 0.0 {
            return Err(settings.bad(EPSILON, "a finite number, 0 or above"));
        }
        let attention = attention::read(&settings, (layer, window), &shape)?;
        let norm = (shape.embed_dim(), norm_eps);
        let post_norm = weights::post_norm(file, settings.architecture, layer, norm)?;
        let weights = weights::read(file, layer, (&shape, settings.architecture), norm_eps)?;
        // After the weights: the file then holds as much as its head dimension claims.
        let mut warnings = Vec::new();
        let width = (shape.head_dim(), window.is_some());
        let rope = rope::read(file, &settings, width, &mut warnings)?;
        let decode_layer = DecodeLayer::new(shape, weights);
        let decode_layer = decode_layer.and_then(|layer| layer.with_attention(attention));
        let layer = decode_layer.map_err(|source| Error::Layer { layer, source })?;
        Ok(Self { layer, rope, post_norm, warnings })
    }
}

const EPSILON: &str = "attention.layer_norm_rms_epsilon";
const HEADS: &str = "attention.head_count";
const KV_HEADS: &str = "attention.head_count_kv";

/// The layer's shape. The head dimension is the key length where the file gives it, else the rows of
/// the key projection divided by the number of KV heads.
fn read_shape(
    file: &GgufFile<'_>,
    settings: &Settings<'_, '_>,
    layer: usize,
) -> Result<LayerShape, Error> {
    let embed_dim = settings.require("embedding_length")?;
    let embed_dim = settings.positive("embedding_length", embed_dim)?;
    let n_heads = settings.require(HEADS)?;
    let n_heads = settings.positive(HEADS, n_heads)?;
    let n_kv_heads = settings.get(KV_HEADS)?.unwrap_or(n_heads);
    let n_kv_heads = settings.positive(KV_HEADS, n_kv_heads)?;
    if !n_heads.is_multiple_of(n_kv_heads) {
        let expected = format!("a divisor of the number of heads, {n_heads}");
        return Err(settings.bad(KV_HEADS, &expected));
    }

    let keys = file.tensor(&weights::matrix_name(layer, "k"))?;
    let head_dim = match settings.get("attention.key_length")? {
        Some(head_dim) => settings.positive("attention.key_length", head_dim)?,
        None => match *keys.dims() {
            [columns, rows] if columns == embed_dim && rows.is_multiple_of(n_kv_heads) => {
                rows / n_kv_heads
            }
            _ => {
                let why = "the embedding length by the rows of equal KV heads";
                let expected = format!("[{embed_dim}, a multiple of {n_kv_heads}], {why}");
                return Err(keys.bad_shape(expected));
            }
        },
    };
    if settings.get("attention.value_length")?.is_some_and(|len: usize| len != head_dim) {
        let expected = format!("the head dimension of the keys, {head_dim}");
        return Err(settings.bad("attention.value_length", &expected));
    }
    let shape = LayerShape::new(embed_dim, n_heads, n_kv_heads, head_dim);
    shape.map_err(|source| Error::Layer { layer, source })
}
