//! Everything that can be wrong with what a caller hands in.

use crate::Format;

/// What was wrong with an argument.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantError {
    /// A number of elements that is no whole number of blocks.
    #[error("{what}: expected a multiple of 32, found {len}")]
    NotBlocks {
        /// Of which elements.
        what: &'static str,
        /// The number of elements.
        len: usize,
    },
    /// A buffer whose length does not go with the others.
    #[error("{what}: expected {expected} elements, found {found}")]
    Length {
        /// Which buffer.
        what: &'static str,
        /// Its length had to be this.
        expected: usize,
        /// Its length.
        found: usize,
    },
    /// Weight bytes whose number does not follow from the shape.
    #[error(
        "a {format} matrix of {rows} rows and {columns} columns has {expected} bytes, found {found}"
    )]
    Bytes {
        /// The block format.
        format: Format,
        /// The matrix's rows.
        rows: usize,
        /// The matrix's columns.
        columns: usize,
        /// What the shape asks for.
        expected: usize,
        /// What there is.
        found: usize,
    },
    /// A shape whose size in bytes is beyond what an address can hold.
    #[error(
        "a {format} matrix of {rows} rows and {columns} columns is too large for this machine's addresses"
    )]
    TooLarge {
        /// The block format.
        format: Format,
        /// The matrix's rows.
        rows: usize,
        /// The matrix's columns.
        columns: usize,
    },
    /// A range of rows that the matrix does not have.
    #[error("expected rows within 0..{rows}, found {start}..{end}")]
    Rows {
        /// The matrix's rows.
        rows: usize,
        /// The range's start.
        start: usize,
        /// The range's end.
        end: usize,
    },
    /// A range of blocks that the matrix's rows do not have.
    #[error("expected blocks within 0..{blocks} of a row, found {start}..{end}")]
    Blocks {
        /// The blocks of a row.
        blocks: usize,
        /// The range's start.
        start: usize,
        /// The range's end.
        end: usize,
    },
    /// Memory for packed weights or activations that the system refused.
    #[error("{bytes} bytes of memory for weights or activations are not to be had")]
    Allocation {
        /// How much was asked for.
        bytes: usize,
    },
    /// A number to be quantized that is NaN or infinite.
    #[error("expected finite numbers to quantize, found {value} at index {index}")]
    NotFinite {
        /// Where it stands.
        index: usize,
        /// The number.
        value: f32,
    },
    /// A number to be quantized whose block would need a scale beyond f16's 65504.
    #[error(
        "the value {value:?} at index {index} is too large: its block's scale does not fit f16"
    )]
    ScaleOverflow {
        /// Where it stands.
        index: usize,
        /// The number.
        value: f32,
    },
    /// A block of weights whose scale is NaN or infinite.
    #[error("expected finite block scales, found {scale} in row {row}, block {block}")]
    BlockScale {
        /// The row of the block.
        row: usize,
        /// The block's number in its row.
        block: usize,
        /// The scale.
        scale: f32,
    },
}
