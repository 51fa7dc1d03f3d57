//! The stages of a layer one by one, for those who compare them with something.

use crate::error::check_vector;
use crate::{DecodeLayer, LayerError, Scratch, phase};
use ck_ops::{CacheElement, KvCache, RopeTable};
use ck_quant::Isa;

/// Runs single stages of a layer on inputs of the caller's choice, with the very code that
/// [`DecodeLayer::decode`] runs.
///
/// Every method leaves its result in the scratch and hands it out.
#[derive(Debug)]
pub struct Stages<'s, 'a, E: CacheElement> {
    layer: &'s DecodeLayer<'a>,
    isa: Isa,
    scratch: &'s mut Scratch<E>,
}

impl<'s, 'a, E: CacheElement> Stages<'s, 'a, E> {
    /// Stages of `layer` that work in `scratch`.
    ///
    /// # Errors
    ///
    /// A scratch that was made for another shape.
    pub fn new(
        layer: &'s DecodeLayer<'a>,
        isa: Isa,
        scratch: &'s mut Scratch<E>,
    ) -> Result<Self, LayerError> {
        if scratch.shape() != layer.shape() {
            return Err(layer.shape().mismatch("the scratch", scratch.shape().to_string()));
        }
        Ok(Self { layer, isa, scratch })
    }

    /// RMSNorm of `input`: `embed_dim` elements in and out.
    ///
    /// # Errors
    ///
    /// A wrong length; a number that is not finite, or too large to be quantized.
    pub fn norm(&mut self, input: &[f32]) -> Result<&[f32], LayerError> {
        check_vector("input", input, self.layer.shape().embed_dim())?;
        let Scratch { normed, activations, .. } = &mut *self.scratch;
        phase::norm(self.isa, &self.layer.weights().norm, input, normed, activations)?;
        Ok(normed)
    }

    /// Q, K and V of a normalized input at `position`, one after the other, Q and K rotated.
    ///
    /// # Errors
    ///
    /// A wrong length; a position beyond the table; a number that is not finite.
    pub fn project(
        &mut self,
        normed: &[f32],
        rope: Option<&RopeTable>,
        position: usize,
    ) -> Result<(&[f32], &[f32], &[f32]), LayerError> {
        let shape = self.layer.shape();
        check_vector("normed", normed, shape.embed_dim())?;
        let Scratch { activations, qkv, .. } = &mut *self.scratch;
        activations.quantize(self.isa, normed)?;
        let all = 0..shape.qkv_dim();
        phase::project(self.isa, self.layer.weights(), activations, all, qkv)?;
        phase::rotate(self.isa, rope, position, &mut qkv[..shape.q_dim() + shape.kv_dim()])?;
        Ok(shape.split(qkv))
    }

    /// What all heads find for a query, over the stored positions and the new `k` and `v`.
    ///
    /// The cache is only read.
    ///
    /// # Errors
    ///
    /// A wrong length; a cache of another shape; a number that is not finite.
    pub fn attend(
        &mut self,
        cache: &KvCache<E>,
        q: &[f32],
        k: &[f32],
        v: &[f32],
    ) -> Result<&[f32], LayerError> {
        let shape = self.layer.shape();
        check_vector("q", q, shape.q_dim())?;
        check_vector("k", k, shape.kv_dim())?;
        check_vector("v", v, shape.kv_dim())?;
        let (to_q, kv) = self.scratch.qkv.split_at_mut(shape.q_dim());
        let (to_k, to_v) = kv.split_at_mut(shape.kv_dim());
        to_q.copy_from_slice(q);
        to_k.copy_from_slice(k);
        to_v.copy_from_slice(v);
        phase::attend(self.isa, self.layer.attention(), cache, self.scratch)?;
        Ok(&self.scratch.attn)
    }

    /// The O projection of the heads' results, its bias, and the residual.
    ///
    /// # Errors
    ///
    /// A wrong length; a number that is not finite.
    pub fn output(&mut self, attn: &[f32], residual: Option<&[f32]>) -> Result<&[f32], LayerError> {
        let shape = self.layer.shape();
        check_vector("attn", attn, shape.q_dim())?;
        if let Some(residual) = residual {
            check_vector("residual", residual, shape.embed_dim())?;
        }
        let Scratch { attn_activations, output, .. } = &mut *self.scratch;
        attn_activations.quantize(self.isa, attn)?;
        let all = 0..shape.embed_dim();
        let weights = &self.layer.weights().o;
        phase::output(self.isa, weights, attn_activations, residual, all, output)?;
        Ok(output)
    }
}
