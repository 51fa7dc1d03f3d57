//! One attention block, and the call that decodes a token through it.

use crate::call::Context;
use crate::error::check_vector;
use crate::phase;
use crate::{LayerError, LayerShape, LayerWeights, Runner};
use ck_ops::{Attention, CacheElement};

/// An attention block whose weights were checked against its shape.
#[derive(Clone, Debug)]
pub struct DecodeLayer<'a> {
    shape: LayerShape,
    weights: LayerWeights<'a>,
    attention: Attention,
}

impl<'a> DecodeLayer<'a> {
    /// A layer of this shape with these weights, and the default attention.
    ///
    /// # Errors
    ///
    /// A matrix or a vector that does not have the shape's dimensions; a number that is not finite; an
    /// epsilon below 0.
    pub fn new(shape: LayerShape, weights: LayerWeights<'a>) -> Result<Self, LayerError> {
        weights.check(&shape)?;
        Ok(Self { shape, attention: shape.attention()?, weights })
    }

    /// The same layer with another scale, a soft cap or a window.
    ///
    /// # Errors
    ///
    /// An attention that was made for other heads.
    pub fn with_attention(mut self, attention: Attention) -> Result<Self, LayerError> {
        let fits = attention.n_heads() == self.shape.n_heads();
        if !fits || attention.shape() != self.shape.cache()? {
            let found = format!("{} query heads on {}", attention.n_heads(), attention.shape());
            return Err(self.shape.mismatch("the attention", found));
        }
        self.attention = attention;
        Ok(self)
    }

    /// The shape.
    #[must_use]
    pub const fn shape(&self) -> LayerShape {
        self.shape
    }

    /// The weights.
    #[must_use]
    pub const fn weights(&self) -> &LayerWeights<'a> {
        &self.weights
    }

    /// The attention: heads, scale, soft cap, window.
    #[must_use]
    pub const fn attention(&self) -> &Attention {
        &self.attention
    }

    /// Decodes one token: `output = residual + attention_block(input)`, and its row is added to the cache.
    ///
    /// The token's position is the cache's length. `input` and `output` have `embed_dim` elements, and so
    /// has `residual`, which may be `input` itself; without it nothing is added. Nothing is allocated.
    ///
    /// # Errors
    ///
    /// Lengths, a cache, a table or a scratch that do not fit the layer; a full cache; a number that is not
    /// finite, in the arguments or on the way. Then `output` and the cache are as they were.
    pub fn decode<E: CacheElement>(
        &self,
        runner: &Runner,
        context: Context<'_, E>,
        input: &[f32],
        residual: Option<&[f32]>,
        output: &mut [f32],
    ) -> Result<(), LayerError> {
        if output.len() != self.shape.embed_dim() {
            let (expected, found) = (self.shape.embed_dim(), output.len());
            return Err(LayerError::Length { what: "output", expected, found });
        }
        output.copy_from_slice(self.run(runner, context, input, residual)?);
        Ok(())
    }

    /// Decodes one token in place: `hidden = hidden + attention_block(hidden)`.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    pub fn decode_in_place<E: CacheElement>(
        &self,
        runner: &Runner,
        context: Context<'_, E>,
        hidden: &mut [f32],
    ) -> Result<(), LayerError> {
        let result = self.run(runner, context, hidden, Some(hidden))?;
        hidden.copy_from_slice(result);
        Ok(())
    }

    /// Runs all phases, stores the new position, and hands out the result, which lies in the scratch.
    fn run<'c, E: CacheElement>(
        &self,
        runner: &Runner,
        context: Context<'c, E>,
        input: &[f32],
        residual: Option<&[f32]>,
    ) -> Result<&'c [f32], LayerError> {
        context.check(self)?;
        check_vector("input", input, self.shape.embed_dim())?;
        if let Some(residual) = residual {
            check_vector("residual", residual, self.shape.embed_dim())?;
        }
        let isa = runner.isa();
        let Context { rope, cache, scratch } = context;
        let weights = &self.weights;
        let position = cache.len();

        phase::norm(isa, &weights.norm, input, &mut scratch.normed, &mut scratch.activations)?;
        let all = 0..self.shape.qkv_dim();
        phase::project(isa, weights, &scratch.activations, all, &mut scratch.qkv)?;
        let rotated = self.shape.q_dim() + self.shape.kv_dim();
        phase::rotate(isa, rope, position, &mut scratch.qkv[..rotated])?;
        phase::attend(isa, &self.attention, cache, scratch)?;
        scratch.attn_activations.quantize(isa, &scratch.attn)?;
        let all = 0..self.shape.embed_dim();
        let activations = &scratch.attn_activations;
        phase::output(isa, &weights.o, activations, residual, all, &mut scratch.output)?;

        cache.append(&scratch.new)?;
        Ok(&scratch.output)
    }
}
