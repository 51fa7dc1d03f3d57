//! A matrix of quantized rows, borrowed from bytes.

use crate::block::check_scales;
use crate::{BLOCK_LEN, BlockQ5_0, BlockQ8_0, Format, Isa, QuantError, QuantizedVector, Weights};
use half::f16;
use std::ops::Range;

/// A matrix in the order of a GGUF file, row after row, borrowed from bytes at any alignment.
///
/// It was checked when it was made: the bytes are exactly those of the shape, and every block's scale is
/// finite. The bytes stay borrowed, so both remain true.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    blocks: Blocks<'a>,
    rows: usize,
    columns: usize,
}

/// The blocks of a matrix, by format.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Blocks<'a> {
    Q5_0(&'a [BlockQ5_0]),
    Q8_0(&'a [BlockQ8_0]),
}

impl Blocks<'_> {
    /// The scale of block number `index`.
    #[inline(always)]
    pub(crate) fn scale(&self, index: usize) -> f16 {
        match self {
            Self::Q5_0(blocks) => blocks[index].scale(),
            Self::Q8_0(blocks) => blocks[index].scale(),
        }
    }
}

impl<'a> Matrix<'a> {
    /// A view of `bytes` as `rows` rows of `columns` elements each.
    ///
    /// Reads every block's scale once. A matrix without columns is valid: all its products are 0.
    ///
    /// # Errors
    ///
    /// `columns` no multiple of 32; a number of bytes other than the shape's, longer included; a size
    /// beyond `usize`; a block whose scale is NaN or infinite.
    pub fn new(
        format: Format,
        rows: usize,
        columns: usize,
        bytes: &'a [u8],
    ) -> Result<Self, QuantError> {
        let expected = format.matrix_bytes(rows, columns)?;
        if bytes.len() != expected {
            let found = bytes.len();
            return Err(QuantError::Bytes { format, rows, columns, expected, found });
        }
        let per_row = columns / BLOCK_LEN;
        let blocks = match format {
            Format::Q5_0 => {
                let blocks: &[BlockQ5_0] = bytemuck::cast_slice(bytes);
                check_scales(blocks, per_row)?;
                Blocks::Q5_0(blocks)
            }
            Format::Q8_0 => {
                let blocks: &[BlockQ8_0] = bytemuck::cast_slice(bytes);
                check_scales(blocks, per_row)?;
                Blocks::Q8_0(blocks)
            }
        };
        Ok(Self { blocks, rows, columns })
    }

    /// The block format.
    #[must_use]
    pub const fn format(&self) -> Format {
        match self.blocks {
            Blocks::Q5_0(_) => Format::Q5_0,
            Blocks::Q8_0(_) => Format::Q8_0,
        }
    }

    /// The number of rows, which is the number of outputs.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns, which is the number of inputs.
    #[must_use]
    pub const fn columns(&self) -> usize {
        self.columns
    }

    /// The bytes that the matrix was made from.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        match self.blocks {
            Blocks::Q5_0(blocks) => bytemuck::cast_slice(blocks),
            Blocks::Q8_0(blocks) => bytemuck::cast_slice(blocks),
        }
    }

    pub(crate) const fn blocks_per_row(&self) -> usize {
        self.columns / BLOCK_LEN
    }

    pub(crate) const fn blocks(&self) -> Blocks<'a> {
        self.blocks
    }

    /// The products of the rows in `rows` with `activations`, as [`Weights::gemv`].
    ///
    /// # Errors
    ///
    /// As [`Weights::gemv`].
    pub fn gemv(
        &self,
        isa: Isa,
        activations: &QuantizedVector,
        rows: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), QuantError> {
        Weights::Rows(*self).gemv(isa, activations, rows, out)
    }
}
