//! The memory that a call works in.

use crate::{LayerError, LayerShape};
use ck_ops::{AttendScratch, Attention, CacheElement, CacheShape, NewPosition};
use ck_quant::QuantizedVector;

/// Everything that a call writes before it commits, allocated once and used again for every token and
/// for every layer of the same shape.
#[derive(Debug)]
pub struct Scratch<E: CacheElement> {
    pub(crate) shape: LayerShape,
    /// The normalized input.
    pub(crate) normed: Vec<f32>,
    /// The normalized input, quantized.
    pub(crate) activations: QuantizedVector,
    /// Q, K and V, one after the other.
    pub(crate) qkv: Vec<f32>,
    /// The new row of the cache.
    pub(crate) new: NewPosition<E>,
    pub(crate) attend: AttendScratch,
    /// What the heads found, before the O projection.
    pub(crate) attn: Vec<f32>,
    /// The same, quantized.
    pub(crate) attn_activations: QuantizedVector,
    /// The result, before it is committed.
    pub(crate) output: Vec<f32>,
}

impl<E: CacheElement> Scratch<E> {
    /// Scratch for layers of this shape.
    ///
    /// # Errors
    ///
    /// A shape that a cache of this element type cannot hold.
    pub fn new(shape: LayerShape) -> Result<Self, LayerError> {
        let attention = shape.attention()?;
        Ok(Self {
            shape,
            normed: vec![0.0; shape.embed_dim()],
            activations: QuantizedVector::zeros(shape.embed_dim())?,
            qkv: vec![0.0; shape.qkv_dim()],
            new: NewPosition::new(shape.cache()?)?,
            attend: AttendScratch::new(&attention)?,
            attn: vec![0.0; shape.q_dim()],
            attn_activations: QuantizedVector::zeros(shape.q_dim())?,
            output: vec![0.0; shape.embed_dim()],
        })
    }

    /// The shape that it was made for.
    #[must_use]
    pub const fn shape(&self) -> LayerShape {
        self.shape
    }
}

impl LayerShape {
    /// The shape of this layer's cache.
    ///
    /// # Errors
    ///
    /// A head dimension that the cache cannot hold.
    pub fn cache(&self) -> Result<CacheShape, LayerError> {
        Ok(CacheShape::new(self.n_kv_heads(), self.head_dim())?)
    }

    /// The attention of this layer, with the default scale of `1 / sqrt(head_dim)`.
    ///
    /// # Errors
    ///
    /// None for a checked shape; the operation's own constructor decides.
    pub fn attention(&self) -> Result<Attention, LayerError> {
        Ok(Attention::new(self.n_heads(), self.n_kv_heads(), self.head_dim())?)
    }

    /// Q, K and V of a vector that holds one after the other.
    pub(crate) fn split<'q>(&self, qkv: &'q [f32]) -> (&'q [f32], &'q [f32], &'q [f32]) {
        let (q, kv) = qkv.split_at(self.q_dim());
        let (k, v) = kv.split_at(self.kv_dim());
        (q, k, v)
    }
}
