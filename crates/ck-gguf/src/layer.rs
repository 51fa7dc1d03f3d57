//! The attention block of one decoder layer, with everything in it checked against the metadata.

use crate::convert::FromValue;
use crate::error::{Error, Place};
use crate::file::GgufFile;
use crate::metadata::Metadata;
use crate::rope;
use crate::weights;
use ck_fused::{DecodeLayer, LayerShape};
use ck_ops::{Pairing, RopeConfig};
use std::fmt;

/// The attention block of one layer, ready to decode, and how its queries and keys are rotated.
///
/// Every dimension was checked against the metadata; every scale, norm weight and bias is finite. The
/// matrices are borrowed from the file.
#[derive(Clone, Debug)]
pub struct AttentionLayer<'a> {
    /// The layer.
    pub layer: DecodeLayer<'a>,
    /// The rotation of queries and keys, from which a [`RopeTable`](ck_ops::RopeTable) is made.
    pub rope: RopeConfig,
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

/// An architecture whose attention block is the one of this workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Architecture {
    Llama,
    Qwen2,
}

impl Architecture {
    const ALL: [Self; 2] = [Self::Llama, Self::Qwen2];

    /// The value of `general.architecture`, with which the keys begin.
    const fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
        }
    }

    /// The pairing that llama.cpp takes for its files.
    pub(crate) const fn pairing(self) -> Pairing {
        match self {
            Self::Llama => Pairing::Interleaved,
            Self::Qwen2 => Pairing::SplitHalf,
        }
    }
}

/// The metadata of one architecture: keys are given without their first part.
pub(crate) struct Settings<'f, 'a> {
    metadata: &'f Metadata<'a>,
    pub(crate) architecture: Architecture,
}

impl<'f, 'a> Settings<'f, 'a> {
    fn new(metadata: &'f Metadata<'a>) -> Result<Self, Error> {
        let name: &str = metadata.require("general.architecture")?;
        let found = || Error::UnsupportedArchitecture { found: name.to_owned() };
        let known = Architecture::ALL.into_iter().find(|known| known.name() == name);
        Ok(Self { metadata, architecture: known.ok_or_else(found)? })
    }

    /// The whole key.
    pub(crate) fn key(&self, suffix: &str) -> String {
        format!("{}.{suffix}", self.architecture.name())
    }

    pub(crate) fn get<T: FromValue<'a>>(&self, suffix: &str) -> Result<Option<T>, Error> {
        self.metadata.get(&self.key(suffix))
    }

    fn require<T: FromValue<'a>>(&self, suffix: &str) -> Result<T, Error> {
        self.metadata.require(&self.key(suffix))
    }

    /// `value`, which `suffix` holds, unless it is zero.
    fn positive(&self, suffix: &str, value: usize) -> Result<usize, Error> {
        if value > 0 { Ok(value) } else { Err(self.bad(suffix, "a number above 0")) }
    }

    /// The error that the value of `suffix` should be something else.
    pub(crate) fn bad(&self, suffix: &str, expected: &str) -> Error {
        let key = self.key(suffix);
        let value = self.metadata.iter().find(|(name, _)| *name == key).map(|(_, value)| value);
        let found = value.map_or_else(|| "absent".to_owned(), |value| value.to_string());
        Error::BadValue { key, expected: expected.to_owned(), found }
    }
}

/// Keys that change the attention in ways that are not supported, unless their value is zero.
const CHANGES: [(&str, &str); 4] = [
    ("attention.scale", "a score scale of its own"),
    ("attention.sliding_window", "a sliding window"),
    ("attention.clamp_kqv", "clamped projections"),
    ("attn_logit_softcapping", "a soft cap of the scores"),
];

impl<'a> AttentionLayer<'a> {
    /// Reads the attention block of layer `layer` of a `llama` or `qwen2` file.
    ///
    /// The embedding and output tensors are not needed. What the file asks for beyond the plain block
    /// (scaled rotations, per-head norms, windows, any further `attn` tensor) is an error, since
    /// leaving it out would give wrong numbers.
    ///
    /// # Errors
    ///
    /// An [`Error`] naming the key or tensor that is missing, wrong, or not supported.
    pub fn read(file: &GgufFile<'a>, layer: usize) -> Result<Self, Error> {
        let settings = Settings::new(file.metadata())?;
        refuse_changes(&settings)?;

        let shape = read_shape(file, &settings, layer)?;
        let norm_eps = settings.require::<f32>(EPSILON)?;
        if !norm_eps.is_finite() || norm_eps < 0.0 {
            return Err(settings.bad(EPSILON, "a finite number, 0 or above"));
        }
        let mut warnings = Vec::new();
        let rope = rope::read(file, &settings, shape.head_dim(), &mut warnings)?;
        let weights = weights::read(file, layer, &shape, norm_eps)?;
        let decode_layer = DecodeLayer::new(shape, weights);
        let layer = decode_layer.map_err(|source| Error::Layer { layer, source })?;
        Ok(Self { layer, rope, warnings })
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

/// Fails if a key asks for another attention than the plain causal one.
fn refuse_changes(settings: &Settings<'_, '_>) -> Result<(), Error> {
    let refuse = |suffix: &str, feature| {
        Err(Error::UnsupportedFeature { place: Place::Key(settings.key(suffix)), feature })
    };
    for (suffix, feature) in CHANGES {
        if settings.get::<f64>(suffix)?.is_some_and(|value| value != 0.0) {
            return refuse(suffix, feature);
        }
    }
    if settings.get("attention.causal")? == Some(false) {
        return refuse("attention.causal", "attention to later positions");
    }
    Ok(())
}
