//! What every operation computes, in `f64` and as plain as its definition.
//!
//! Nobody optimises this module. Sums are in `f64` or, where they are of integers, in `i64`. The one exception
//! is quantization: the numeric contract fixes every bit of it in `f32`, so the quantizers here
//! do the same `f32` operations, written out plainly.
//!
//! Data that a caller of the shipped crates could get wrong is answered with [`Rejected`], so that a test can
//! ask whether both sides refuse the same inputs. Lengths that do not fit together are mistakes of the
//! test itself and panic.

mod attention;
mod cache;
mod layer;
mod quant;
mod rmsnorm;
mod rope;
mod sum;
mod weights;

pub use attention::{Attention, softmax};
pub use cache::CacheRounding;
pub use layer::{Layer, LayerTrace};
pub use quant::{
    BLOCK, Block, Format, block_dot, decode_row, dequantize_row, quantize_row, row_dot,
};
pub use rmsnorm::{RmsNorm, rmsnorm};
pub use rope::{Pairing, Rope, Scaling};
pub use sum::Sum;
pub use weights::{HeadNorm, LayerWeights, Projection, Shape};

use std::fmt;

/// Every value as `f64`, exactly.
#[must_use]
pub fn widen(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

/// Every value rounded to `f32`, ties to even.
#[must_use]
pub fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

/// Why the contract demands an error instead of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// An input element is NaN or infinite.
    NonFinite {
        /// The first such element.
        index: usize,
    },
    /// The scale of a quantized block is beyond the range of `f16`.
    ScaleOverflow {
        /// The first such block.
        block: usize,
    },
    /// A row is no whole number of blocks.
    PartialBlock {
        /// The row's length in elements.
        len: usize,
    },
    /// The mean of the squares is beyond the range of `f32`.
    NormOverflow,
    /// The mean of the squares (as `f32`) and epsilon are both zero.
    NormOfZero,
    /// A key or value is beyond the range of the cache's element type.
    CacheOverflow {
        /// The first such element of the row.
        index: usize,
    },
    /// The number of query heads is not a positive multiple of the number of KV heads.
    HeadCounts {
        /// Query heads.
        n_heads: usize,
        /// KV heads.
        n_kv_heads: usize,
    },
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NonFinite { index } => write!(f, "element {index} is not finite"),
            Self::ScaleOverflow { block } => {
                write!(f, "the scale of block {block} is beyond the range of f16")
            }
            Self::PartialBlock { len } => {
                write!(f, "a row of {len} elements is no whole number of blocks of {BLOCK}")
            }
            Self::NormOverflow => write!(f, "the mean of the squares is beyond the range of f32"),
            Self::NormOfZero => write!(f, "the mean of the squares and epsilon are both zero"),
            Self::CacheOverflow { index } => {
                write!(f, "element {index} of the row is beyond the range of the cache's type")
            }
            Self::HeadCounts { n_heads, n_kv_heads } => {
                write!(f, "{n_heads} query heads are no positive multiple of {n_kv_heads} KV heads")
            }
        }
    }
}

impl std::error::Error for Rejected {}

/// The first element that is not finite, as an error.
fn reject_non_finite(values: impl IntoIterator<Item = f64>) -> Result<(), Rejected> {
    match values.into_iter().position(|value| !value.is_finite()) {
        Some(index) => Err(Rejected::NonFinite { index }),
        None => Ok(()),
    }
}
