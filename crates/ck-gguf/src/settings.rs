//! The architectures that are read, and the metadata of one of them.

use crate::convert::FromValue;
use crate::error::Error;
use crate::metadata::Metadata;
use ck_ops::Pairing;

/// An architecture whose attention block is the one of this workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Architecture {
    Llama,
    Qwen2,
    Qwen3,
    Gemma2,
    Gemma3,
}

impl Architecture {
    const ALL: [Self; 5] = [Self::Llama, Self::Qwen2, Self::Qwen3, Self::Gemma2, Self::Gemma3];

    /// The value of `general.architecture`, with which the keys begin.
    const fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::Gemma2 => "gemma2",
            Self::Gemma3 => "gemma3",
        }
    }

    /// The names of all, for error texts.
    pub(crate) fn names() -> String {
        Self::ALL.map(|known| format!("{:?}", known.name())).join(", ")
    }

    /// The pairing that llama.cpp takes for its files.
    pub(crate) const fn pairing(self) -> Pairing {
        match self {
            Self::Llama => Pairing::Interleaved,
            Self::Qwen2 | Self::Qwen3 | Self::Gemma2 | Self::Gemma3 => Pairing::SplitHalf,
        }
    }

    /// Whether what the block computes is normalized before it is added to the hidden state.
    pub(crate) const fn has_post_norm(self) -> bool {
        matches!(self, Self::Gemma2 | Self::Gemma3)
    }

    /// Whether every query head and key head is normalized before its rotation.
    pub(crate) const fn has_head_norms(self) -> bool {
        matches!(self, Self::Qwen3 | Self::Gemma3)
    }

    /// What is known of models of which some layers attend to a window only.
    pub(crate) const fn windows(self) -> Option<Windows> {
        match self {
            Self::Llama | Self::Qwen2 | Self::Qwen3 => None,
            Self::Gemma2 => {
                Some(Windows { period: 2, len: 4096, plain_base: None, layers_of_largest: 46 })
            }
            Self::Gemma3 => {
                Some(Windows { period: 6, len: 0, plain_base: Some(1e4), layers_of_largest: 62 })
            }
        }
    }
}

/// Gemma's layers take turns: the last of every `period` attends to everything, the others to a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    /// Layers in a turn, where the file does not say.
    pub(crate) period: usize,
    /// The length of the window where the file does not say, 0 for none.
    pub(crate) len: usize,
    /// The base of the rotation of layers with a window, which is not scaled; none where they rotate as the others.
    pub(crate) plain_base: Option<f64>,
    /// The number of layers of the largest model, whose scores are scaled by the embedding length per head instead of the
    /// head dimension. llama.cpp knows it by that number too; files do not say.
    pub(crate) layers_of_largest: usize,
}

/// The metadata of one architecture: keys are given without their first part.
pub(crate) struct Settings<'f, 'a> {
    metadata: &'f Metadata<'a>,
    pub(crate) architecture: Architecture,
}

impl<'f, 'a> Settings<'f, 'a> {
    pub(crate) fn new(metadata: &'f Metadata<'a>) -> Result<Self, Error> {
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

    pub(crate) fn require<T: FromValue<'a>>(&self, suffix: &str) -> Result<T, Error> {
        self.metadata.require(&self.key(suffix))
    }

    /// A number above 0. Where llama.cpp takes 0 for a key that is absent, so does this.
    pub(crate) fn nonzero<T>(&self, suffix: &str) -> Result<Option<T>, Error>
    where
        T: FromValue<'a> + Copy + Into<f64>,
    {
        let Some(value) = self.get::<T>(suffix)? else { return Ok(None) };
        let number: f64 = value.into();
        if !number.is_finite() || number < 0.0 {
            return Err(self.bad(suffix, "a finite number, 0 or above"));
        }
        Ok((number > 0.0).then_some(value))
    }

    /// `value`, which `suffix` holds, unless it is zero.
    pub(crate) fn positive(&self, suffix: &str, value: usize) -> Result<usize, Error> {
        if value > 0 { Ok(value) } else { Err(self.bad(suffix, "a number above 0")) }
    }

    /// The error that the value of `suffix` should be something else.
    pub(crate) fn bad(&self, suffix: &str, expected: &str) -> Error {
        let key = self.key(suffix);
        let value = self.metadata.iter().find(|(name, _)| *name == key).map(|(_, value)| value);
        let found = value.map_or_else(|| "absent".to_owned(), |value| value.to_string());
        Error::BadValue { key, expected: expected.to_owned(), found }
    }

    /// The error that `suffix` asks for something that is not supported.
    pub(crate) fn unsupported(&self, suffix: &str, feature: &'static str) -> Error {
        let place = crate::Place::Key(self.key(suffix));
        Error::UnsupportedFeature { place, feature }
    }
}
