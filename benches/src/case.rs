//! Cases: what is measured, as data.

use crate::record::Work;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What kind of work a case is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Activations are quantized.
    Quantize,
    /// A matrix is multiplied with a vector.
    Gemv,
    /// Attention over a cache.
    Attention,
    /// A whole attention block.
    Layer,
}

impl Kind {
    /// All kinds, from the smallest work to the largest.
    pub const ALL: [Self; 4] = [Self::Quantize, Self::Gemv, Self::Attention, Self::Layer];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Quantize => "quantize",
            Self::Gemv => "gemv",
            Self::Attention => "attention",
            Self::Layer => "layer",
        })
    }
}

/// Whether the data of one call is that of the call before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Heat {
    /// The same data again and again: it stays in cache if it fits.
    Hot,
    /// Other copies in turn, so that it comes from memory.
    Streaming,
}

impl Heat {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Hot, Self::Streaming];
}

impl fmt::Display for Heat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Hot => "hot",
            Self::Streaming => "streaming",
        })
    }
}

/// One case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The kind of work.
    pub kind: Kind,
    /// Of what: a format and a shape, or a model.
    pub subject: String,
    /// The length of the context, where there is one.
    pub context: Option<usize>,
    /// Where the data is.
    pub heat: Heat,
    /// How many threads.
    pub threads: usize,
    /// What one call amounts to.
    pub work: Work,
}

impl Case {
    /// The name in tables and records.
    #[must_use]
    pub fn name(&self) -> String {
        let context = self.context.map(|context| format!(" ctx {context}")).unwrap_or_default();
        let Self { kind, subject, heat, threads, .. } = self;
        format!("{kind} {subject}{context} {heat} {threads}T")
    }

    /// Whether every word of a filter is in the name.
    #[must_use]
    pub fn matches(&self, filter: &str) -> bool {
        let name = self.name();
        filter.split_whitespace().all(|word| name.contains(word))
    }
}
