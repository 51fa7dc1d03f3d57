//! A matrix of quantized rows, borrowed from bytes.

use crate::block::check_scales;
use crate::{BLOCK_LEN, BlockQ5_0, BlockQ8_0, Format, Isa, QuantError, QuantizedVector, gemv};
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

    pub(crate) const fn blocks(&self) -> Blocks<'a> {
        self.blocks
    }

    /// The products of the rows in `rows` with `activations`: `out[i]` is that of row `rows.start + i`.
    ///
    /// Every product is one sequential sum over its blocks, [`q5_0::vec_dot`](crate::q5_0::vec_dot) or
    /// [`q8_0::vec_dot`](crate::q8_0::vec_dot), with the same bits at every level.
    ///
    /// # Errors
    ///
    /// Rows that the matrix does not have; activations that are not as long as a row; an output that is
    /// not as long as the range. `out` is then as it was.
    pub fn gemv(
        &self,
        isa: Isa,
        activations: &QuantizedVector,
        rows: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), QuantError> {
        check_call(self.rows, self.columns, activations, &rows, out.len())?;
        gemv::rows(isa, self, activations, rows, out);
        Ok(())
    }
}

/// Checks the arguments of a product against a matrix of `matrix_rows` rows of `columns` columns.
pub(crate) fn check_call(
    matrix_rows: usize,
    columns: usize,
    activations: &QuantizedVector,
    rows: &Range<usize>,
    out_len: usize,
) -> Result<(), QuantError> {
    if rows.start > rows.end || rows.end > matrix_rows {
        return Err(QuantError::Rows { rows: matrix_rows, start: rows.start, end: rows.end });
    }
    activations.check_blocks(columns / BLOCK_LEN)?;
    if out_len != rows.len() {
        return Err(QuantError::Length { what: "output", expected: rows.len(), found: out_len });
    }
    Ok(())
}
