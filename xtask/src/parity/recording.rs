//! A recorded layer: its weights, and what was recorded of every token.

use anyhow::{Context as _, Result, bail, ensure};
use ck_fused::{DecodeLayer, LayerShape};
use ck_gguf::{AttentionLayer, GgufFile};
use ck_ops::{CacheElement, KvCache, Pairing, RopeTable};
use std::fmt;
use std::path::Path;

/// A recording, read and checked.
pub(super) struct Recording<'a> {
    pub(super) name: String,
    pub(super) layer: DecodeLayer<'a>,
    /// The same layer with packed weights.
    pub(super) packed: DecodeLayer<'static>,
    pub(super) rope: RopeTable,
    pub(super) n_tokens: usize,
    warnings: Vec<String>,
    pub(super) input: Rows,
    pub(super) norm: Option<Rows>,
    pub(super) q: Option<Rows>,
    pub(super) k: Option<Rows>,
    pub(super) v: Option<Rows>,
    pub(super) attn: Option<Rows>,
    pub(super) output: Option<Rows>,
}

/// A recorded stage: one row for every token.
pub(super) struct Rows {
    values: Vec<f32>,
    width: usize,
}

impl Rows {
    /// The row of one token.
    pub(super) fn row(&self, token: usize) -> &[f32] {
        &self.values[token * self.width..(token + 1) * self.width]
    }
}

impl<'a> Recording<'a> {
    /// Reads the recording in `bytes`.
    pub(super) fn parse(path: &Path, bytes: &'a [u8]) -> Result<Self> {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let file = GgufFile::parse(bytes)?;
        let number: usize = file.metadata().require("golden.layer")?;
        let n_tokens: usize = file.metadata().require("golden.n_tokens")?;
        ensure!(n_tokens > 0, "golden.n_tokens: expected at least 1 token, found 0");

        let read = AttentionLayer::read(&file, number)?;
        check_style(file.metadata().require("golden.rope_style")?, read.rope.pairing)?;
        let AttentionLayer { layer, rope, warnings, .. } = read;
        let warnings = warnings.iter().map(ToString::to_string).collect();

        let shape = layer.shape();
        let rows = |stage: &str, width| rows(&file, stage, width, n_tokens);
        let input = rows("input", shape.embed_dim())?.context("golden.input is missing")?;
        // Only now: the input has shown that there are as many tokens as the file says.
        let rope = RopeTable::new(rope, n_tokens)?;
        Ok(Self {
            norm: rows("norm", shape.embed_dim())?,
            q: rows("q", shape.q_dim())?,
            k: rows("k", shape.kv_dim())?,
            v: rows("v", shape.kv_dim())?,
            attn: rows("attn", shape.q_dim())?,
            output: rows("output", shape.embed_dim())?,
            name,
            packed: layer.pack()?,
            layer,
            rope,
            n_tokens,
            warnings,
            input,
        })
    }

    /// The layer's shape.
    pub(super) fn shape(&self) -> LayerShape {
        self.layer.shape()
    }

    /// An empty cache with room for every token.
    pub(super) fn cache<E: CacheElement>(&self) -> Result<KvCache<E>> {
        Ok(KvCache::with_capacity(self.shape().cache()?, self.n_tokens)?)
    }
}

impl fmt::Display for Recording<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}, {} tokens", self.name, self.shape(), self.n_tokens)?;
        self.warnings.iter().try_for_each(|warning| write!(f, "\n  warning: {warning}"))
    }
}

/// Checks that the recording rotates as the architecture of the file says.
fn check_style(style: &str, pairing: Pairing) -> Result<()> {
    let expected = match pairing {
        Pairing::Interleaved => "interleaved",
        Pairing::SplitHalf => "split_half",
    };
    ensure!(style == expected, "golden.rope_style: expected {expected:?}, found {style:?}");
    Ok(())
}

/// The recording of one stage, if the file has it.
fn rows(file: &GgufFile<'_>, stage: &str, width: usize, n_tokens: usize) -> Result<Option<Rows>> {
    let Some(tensor) = file.find(&format!("golden.{stage}")) else { return Ok(None) };
    let [columns, rows] = *tensor.dims() else {
        bail!("golden.{stage}: expected 2 dimensions, found {:?}", tensor.dims());
    };
    ensure!(
        (columns, rows) == (width, n_tokens),
        "golden.{stage}: expected {n_tokens} rows of {width}, found {rows} rows of {columns}"
    );
    Ok(Some(Rows { values: tensor.to_f32()?, width }))
}
