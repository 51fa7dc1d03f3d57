//! One attention block, and the call that decodes a token through it.

use crate::call::DecodeContext;
use crate::error::check_vector;
use crate::{LayerError, LayerShape, LayerWeights, Norm, Runner, strategy};
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

    /// The same layer with its own memory: matrices packed for the kernels, everything else copied.
    ///
    /// The bits do not change; the products are several times as fast.
    ///
    /// # Errors
    ///
    /// Memory that is not to be had.
    pub fn pack(&self) -> Result<DecodeLayer<'static>, LayerError> {
        let weights = self.weights.pack()?;
        Ok(DecodeLayer { shape: self.shape, attention: self.attention.clone(), weights })
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

    /// The norms of query heads and of key heads.
    pub(crate) fn head_norms(&self) -> [Option<&Norm<'_>>; 2] {
        [self.weights.q_norm.as_ref(), self.weights.k_norm.as_ref()]
    }

    /// The attention: heads, scale, soft cap, window.
    #[must_use]
    pub const fn attention(&self) -> &Attention {
        &self.attention
    }

    /// Decodes one token: `output = residual + attention_block(input)`, and its row is added to the cache.
    ///
    /// The token's position is the cache's length. `input` and `output` have `embed_dim` elements, and so
    /// has `residual`, which may be `input` itself; without it nothing is added. Nothing is allocated, but
    /// for the error of a part of another shape, which tells both.
    ///
    /// # Errors
    ///
    /// Lengths, a cache, a table or a scratch that do not fit the layer; a full cache; a number that is not
    /// finite, in the arguments or on the way. Then `output` and the cache are as they were.
    pub fn decode<E: CacheElement>(
        &self,
        runner: &Runner<'_>,
        context: DecodeContext<'_, E>,
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
        runner: &Runner<'_>,
        context: DecodeContext<'_, E>,
        hidden: &mut [f32],
    ) -> Result<(), LayerError> {
        let result = self.run(runner, context, hidden, Some(hidden))?;
        hidden.copy_from_slice(result);
        Ok(())
    }

    /// Runs all phases, stores the new position, and hands out the result, which lies in the scratch.
    fn run<'c, E: CacheElement>(
        &self,
        runner: &Runner<'_>,
        context: DecodeContext<'c, E>,
        input: &[f32],
        residual: Option<&[f32]>,
    ) -> Result<&'c [f32], LayerError> {
        context.check(self, runner)?;
        check_vector("input", input, self.shape.embed_dim())?;
        if let Some(residual) = residual {
            check_vector("residual", residual, self.shape.embed_dim())?;
        }
        let DecodeContext { rope, cache, scratch } = context;
        let step = runner.step(self, rope, cache);
        strategy::run(runner, step, scratch, input, residual)?;
        cache.append(&scratch.members[0].new)?;
        Ok(&scratch.output)
    }
}
