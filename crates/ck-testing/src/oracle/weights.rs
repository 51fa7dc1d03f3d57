//! The widths and the weights of an attention block.

use super::{
    Block, Format, Rejected, Sum, decode_row, narrow, quantize_row, rmsnorm, row_dot, widen,
};

/// The widths of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Elements of the hidden state.
    pub embed_dim: usize,
    /// Query heads.
    pub n_heads: usize,
    /// KV heads.
    pub n_kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
}

impl Shape {
    /// Elements of a query row.
    #[must_use]
    pub fn q_width(&self) -> usize {
        self.n_heads * self.head_dim
    }

    /// Elements of a row of keys or values.
    #[must_use]
    pub fn kv_width(&self) -> usize {
        self.n_kv_heads * self.head_dim
    }
}

/// A quantized matrix, row after row, and its bias.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    /// The format of the rows.
    pub format: Format,
    /// Elements of a row, a multiple of [`super::BLOCK`].
    pub columns: usize,
    /// The rows as a file has them.
    pub bytes: Vec<u8>,
    /// One number per row, if there is a bias.
    pub bias: Option<Vec<f32>>,
}

impl Projection {
    /// How many rows the bytes hold.
    ///
    /// # Panics
    ///
    /// If the bytes are no whole number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        let row_bytes = self.format.row_bytes(self.columns);
        assert_eq!(self.bytes.len() % row_bytes, 0, "bytes are whole rows of {row_bytes}");
        self.bytes.len() / row_bytes
    }

    /// Every row times the activations, then plus the bias: one term per block, one for the bias.
    ///
    /// # Panics
    ///
    /// If the lengths do not fit.
    #[must_use]
    pub fn sums(&self, activations: &[Block]) -> Vec<Sum> {
        if let Some(bias) = &self.bias {
            assert_eq!(bias.len(), self.rows(), "one bias per row");
        }
        self.bytes
            .chunks_exact(self.format.row_bytes(self.columns))
            .enumerate()
            .map(|(row, bytes)| {
                let dot = row_dot(&decode_row(self.format, bytes), activations);
                self.bias.as_ref().map_or(dot, |bias| dot.plus(f64::from(bias[row])))
            })
            .collect()
    }

    /// The values of [`Projection::sums`] for activations that are first rounded to `f32` and quantized to
    /// Q8_0.
    ///
    /// # Errors
    ///
    /// Those of [`quantize_row`].
    ///
    /// # Panics
    ///
    /// If the lengths do not fit.
    pub fn apply(&self, activations: &[f64]) -> Result<Vec<f64>, Rejected> {
        let quantized = quantize_row(Format::Q8_0, &narrow(activations))?;
        let blocks = decode_row(Format::Q8_0, &quantized);
        Ok(self.sums(&blocks).iter().map(|sum| sum.value).collect())
    }
}

/// A norm of every head of a row of queries or keys, before the rotation.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadNorm {
    /// The norm's weights, `head_dim` elements.
    pub gamma: Vec<f32>,
    /// The norm's epsilon.
    pub eps: f32,
}

impl HeadNorm {
    /// Normalizes every head of a row in place.
    ///
    /// # Errors
    ///
    /// Those of [`rmsnorm`].
    ///
    /// # Panics
    ///
    /// If the row is no whole number of heads.
    pub fn apply(&self, row: &mut [f64]) -> Result<(), Rejected> {
        let head_dim = self.gamma.len();
        assert_eq!(row.len() % head_dim, 0, "{} elements of heads of {head_dim}", row.len());
        for head in row.chunks_exact_mut(head_dim) {
            let normed = rmsnorm(head, &widen(&self.gamma), self.eps)?;
            head.copy_from_slice(&normed.values);
        }
        Ok(())
    }
}

/// The weights of one attention block.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerWeights {
    /// The widths.
    pub shape: Shape,
    /// The norm's weights, `embed_dim` elements.
    pub gamma: Vec<f32>,
    /// The norm's epsilon.
    pub eps: f32,
    /// `n_heads * head_dim` rows of `embed_dim`.
    pub q: Projection,
    /// `n_kv_heads * head_dim` rows of `embed_dim`.
    pub k: Projection,
    /// `n_kv_heads * head_dim` rows of `embed_dim`.
    pub v: Projection,
    /// `embed_dim` rows of `n_heads * head_dim`.
    pub o: Projection,
    /// The norm of query heads, if there is one.
    pub q_norm: Option<HeadNorm>,
    /// The norm of key heads, if there is one.
    pub k_norm: Option<HeadNorm>,
}
