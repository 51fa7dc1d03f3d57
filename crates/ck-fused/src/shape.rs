//! The shape of an attention block.

use crate::LayerError;
use ck_ops::{Attention, CacheShape};
use ck_quant::BLOCK_LEN;
use std::fmt;

/// The four dimensions of an attention block, checked when made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LayerShape {
    embed_dim: usize,
    n_heads: usize,
    n_kv_heads: usize,
    head_dim: usize,
}

impl LayerShape {
    /// A shape of `embed_dim` channels and `n_heads` query heads on `n_kv_heads` KV heads of `head_dim` each.
    ///
    /// `n_heads * head_dim` need not be `embed_dim`.
    ///
    /// # Errors
    ///
    /// A dimension of zero; heads that do not divide; an odd `head_dim`; `embed_dim` or
    /// `n_heads * head_dim` no multiple of 32; products beyond `usize`.
    pub fn new(
        embed_dim: usize,
        n_heads: usize,
        n_kv_heads: usize,
        head_dim: usize,
    ) -> Result<Self, LayerError> {
        for (what, value) in [
            ("an embedding dimension", embed_dim),
            ("a number of query heads", n_heads),
            ("a number of KV heads", n_kv_heads),
            ("a head dimension", head_dim),
        ] {
            if value == 0 {
                return Err(LayerError::Zero { what });
            }
        }
        if !n_heads.is_multiple_of(n_kv_heads) {
            return Err(LayerError::Heads { n_heads, n_kv_heads });
        }
        if !head_dim.is_multiple_of(2) {
            return Err(LayerError::OddHeadDim { head_dim });
        }
        let q_dim = n_heads
            .checked_mul(head_dim)
            .filter(|q_dim| q_dim.checked_mul(3).is_some())
            .ok_or(LayerError::TooLarge { what: "n_heads * head_dim" })?;
        for (what, found) in [("embed_dim", embed_dim), ("n_heads * head_dim", q_dim)] {
            if !found.is_multiple_of(BLOCK_LEN) {
                return Err(LayerError::NotBlocks { what, found });
            }
        }
        Ok(Self { embed_dim, n_heads, n_kv_heads, head_dim })
    }

    /// Channels of the hidden state.
    #[must_use]
    pub const fn embed_dim(&self) -> usize {
        self.embed_dim
    }

    /// Query heads.
    #[must_use]
    pub const fn n_heads(&self) -> usize {
        self.n_heads
    }

    /// KV heads. Query head `h` attends to KV head `h / (n_heads / n_kv_heads)`.
    #[must_use]
    pub const fn n_kv_heads(&self) -> usize {
        self.n_kv_heads
    }

    /// Elements of one head.
    #[must_use]
    pub const fn head_dim(&self) -> usize {
        self.head_dim
    }

    /// Elements of all query heads: `n_heads * head_dim`.
    #[must_use]
    pub const fn q_dim(&self) -> usize {
        self.n_heads * self.head_dim
    }

    /// Elements of all KV heads: `n_kv_heads * head_dim`.
    #[must_use]
    pub const fn kv_dim(&self) -> usize {
        self.n_kv_heads * self.head_dim
    }

    /// The shape of this layer's cache.
    ///
    /// # Errors
    ///
    /// None for a checked shape; the cache's own constructor decides.
    pub fn cache(&self) -> Result<CacheShape, LayerError> {
        Ok(CacheShape::new(self.n_kv_heads, self.head_dim)?)
    }

    /// The attention of this layer, with the default scale of `1 / sqrt(head_dim)`.
    ///
    /// # Errors
    ///
    /// None for a checked shape; the operation's own constructor decides.
    pub fn attention(&self) -> Result<Attention, LayerError> {
        Ok(Attention::new(self.n_heads, self.n_kv_heads, self.head_dim)?)
    }

    /// The fewest neighbouring query heads whose results are whole quantization blocks:
    /// `32 / gcd(32, head_dim)`. They divide the number of heads.
    pub(crate) const fn heads_in_whole_blocks(&self) -> usize {
        let shared_twos = self.head_dim.trailing_zeros();
        if shared_twos >= 5 { 1 } else { BLOCK_LEN >> shared_twos }
    }

    /// Rows of the Q, K and V projections together.
    #[must_use]
    pub const fn qkv_dim(&self) -> usize {
        self.q_dim() + 2 * self.kv_dim()
    }
}

impl fmt::Display for LayerShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { embed_dim, n_heads, n_kv_heads, head_dim } = self;
        write!(
            f,
            "embed {embed_dim}, {n_heads} heads on {n_kv_heads} KV heads, head dim {head_dim}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shapes_of_real_models_are_accepted() {
        for (embed_dim, n_heads, n_kv_heads, head_dim) in [
            (896, 14, 2, 64),
            (576, 9, 3, 64),
            (2048, 32, 8, 64),
            (4096, 32, 8, 128),
            (512, 6, 3, 96),
        ] {
            let shape = LayerShape::new(embed_dim, n_heads, n_kv_heads, head_dim).unwrap();
            assert_eq!((shape.n_heads(), shape.n_kv_heads()), (n_heads, n_kv_heads));
            assert_eq!(shape.q_dim(), n_heads * head_dim);
            assert_eq!(shape.qkv_dim(), (n_heads + 2 * n_kv_heads) * head_dim);
        }
    }

    #[test]
    fn whole_blocks_take_as_few_heads_as_they_can() {
        for (head_dim, heads) in
            [(64, 1), (96, 1), (32, 1), (48, 2), (16, 2), (8, 4), (6, 16), (2, 16)]
        {
            let shape = LayerShape::new(32, 16, 1, head_dim).unwrap();
            assert_eq!(shape.heads_in_whole_blocks(), heads, "heads of {head_dim}");
        }
    }

    // Kernel fault 1 and case B28: heads that do not divide.
    #[test]
    fn query_heads_must_share_the_kv_heads_evenly() {
        for (n_heads, n_kv_heads) in [(15, 2), (2, 14)] {
            let error = LayerShape::new(896, n_heads, n_kv_heads, 64).unwrap_err();
            assert_eq!(error, LayerError::Heads { n_heads, n_kv_heads });
        }
        assert!(matches!(LayerShape::new(896, 14, 0, 64), Err(LayerError::Zero { .. })));
    }

    // Kernel fault 7: a width of 240 would lose 16 channels.
    #[test]
    fn widths_are_whole_blocks() {
        for (embed_dim, n_heads, head_dim, what, found) in
            [(896, 3, 80, "n_heads * head_dim", 240), (880, 14, 64, "embed_dim", 880)]
        {
            let error = LayerShape::new(embed_dim, n_heads, 1, head_dim).unwrap_err();
            assert_eq!(error, LayerError::NotBlocks { what, found });
        }
    }

    #[test]
    fn extreme_dimensions_are_errors() {
        let max = usize::MAX - 31;
        for (embed_dim, n_heads, n_kv_heads, head_dim) in [
            (32, max, max, 2),
            (32, usize::MAX, 1, 64),
            (0, 1, 1, 32),
            (32, 0, 1, 32),
            (32, 1, 1, 33),
        ] {
            let shape = LayerShape::new(embed_dim, n_heads, n_kv_heads, head_dim);
            assert!(shape.is_err(), "{shape:?}");
        }
    }
}
