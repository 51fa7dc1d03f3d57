//! Everything that can be wrong with a shape, with weights, or with a call.

use ck_ops::OpError;
use ck_quant::QuantError;
use ck_threadpool::Interrupted;

/// What was wrong. A call that returns one of these has changed nothing.
#[derive(Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// A dimension that is zero.
    #[error("expected {what} of at least 1, found 0")]
    Zero {
        /// Which dimension.
        what: &'static str,
    },
    /// Query heads that do not share the KV heads evenly.
    #[error("expected a number of query heads that {n_kv_heads} KV heads divide, found {n_heads}")]
    Heads {
        /// The query heads.
        n_heads: usize,
        /// The KV heads.
        n_kv_heads: usize,
    },
    /// A head dimension that has no halves.
    #[error("expected an even head dimension, found {head_dim}")]
    OddHeadDim {
        /// The head dimension.
        head_dim: usize,
    },
    /// A width that is no whole number of quantization blocks.
    #[error("expected {what} to be a multiple of 32, found {found}")]
    NotBlocks {
        /// Which width.
        what: &'static str,
        /// The width.
        found: usize,
    },
    /// A shape beyond what this machine can address.
    #[error("the shape is too large: {what} overflows")]
    TooLarge {
        /// Which product of dimensions.
        what: &'static str,
    },
    /// The system refused memory.
    #[error("there is no memory for {what}")]
    OutOfMemory {
        /// What it was for.
        what: &'static str,
    },
    /// A weight matrix of another shape than the layer's.
    #[error(
        "{name}: expected {expected_rows} rows of {expected_columns} columns, found {rows} rows of {columns}"
    )]
    WeightShape {
        /// The projection.
        name: &'static str,
        /// The rows that the layer's shape asks for.
        expected_rows: usize,
        /// The columns that the layer's shape asks for.
        expected_columns: usize,
        /// The matrix's rows.
        rows: usize,
        /// The matrix's columns.
        columns: usize,
    },
    /// A vector of another length than the layer's shape asks for.
    #[error("{what}: expected {expected} elements, found {found}")]
    Length {
        /// Which vector.
        what: &'static str,
        /// The length it had to have.
        expected: usize,
        /// Its length.
        found: usize,
    },
    /// A number that is NaN or infinite.
    #[error("{what}: expected finite numbers, found {value} at index {index}")]
    NotFinite {
        /// Which vector.
        what: &'static str,
        /// Where it stands.
        index: usize,
        /// The number.
        value: f32,
    },
    /// An epsilon that RMSNorm cannot use.
    #[error("expected a finite epsilon of at least 0, found {eps}")]
    Epsilon {
        /// The epsilon.
        eps: f32,
    },
    /// A cache, a table, a scratch or an attention that was made for another shape.
    #[error("{what} was made for {found}, the layer is {expected}")]
    Mismatch {
        /// What does not fit the layer.
        what: &'static str,
        /// The layer's own shape.
        expected: String,
        /// The shape it was made for.
        found: String,
    },
    /// A context that is full: there is no room for the next position.
    #[error("the cache is full: {len} of {capacity} positions are stored")]
    CacheFull {
        /// The positions stored.
        len: usize,
        /// The positions there is room for.
        capacity: usize,
    },
    /// A position beyond what was prepared for.
    #[error("position {position} is beyond the {available} positions of the {what}")]
    Position {
        /// What has too few positions.
        what: &'static str,
        /// The position to be decoded.
        position: usize,
        /// The positions there are.
        available: usize,
    },
    /// A scratch that was made for a smaller team than the runner's.
    #[error("the scratch is for a team of {found}, the runner has {expected} members")]
    Team {
        /// The runner's members.
        expected: usize,
        /// The scratch's members.
        found: usize,
    },
    /// Another member of the team failed. Its error is what a call returns, never this one.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// An operation failed on the values it met.
    #[error(transparent)]
    Op(#[from] OpError),
    /// A quantization failed on the values it met.
    #[error(transparent)]
    Quant(#[from] QuantError),
}

/// Checks that `values` has `expected` elements, all finite.
pub(crate) fn check_vector(
    what: &'static str,
    values: &[f32],
    expected: usize,
) -> Result<(), LayerError> {
    if values.len() != expected {
        return Err(LayerError::Length { what, expected, found: values.len() });
    }
    check_finite(what, values)
}

/// Checks that all of `values` are finite: no exponent has all its bits set.
pub(crate) fn check_finite(what: &'static str, values: &[f32]) -> Result<(), LayerError> {
    const EXPONENT: u32 = 0x7f80_0000;
    if !values.iter().fold(false, |found, x| found | (x.to_bits() & EXPONENT == EXPONENT)) {
        return Ok(());
    }
    let index = values.iter().position(|x| !x.is_finite()).unwrap_or_default();
    Err(LayerError::NotFinite { what, index, value: values[index] })
}
