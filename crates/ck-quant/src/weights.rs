//! Weights in either form, and the products that both have.

use crate::gemv::{self, Tile};
use crate::{BLOCK_LEN, Format, Isa, Matrix, PackedMatrix, QuantError, QuantizedVector};
use std::ops::Range;

/// A matrix in one of its two forms. Both give the same bits.
#[derive(Clone, Copy, Debug)]
pub enum Weights<'a> {
    /// Row after row, as in a file.
    Rows(Matrix<'a>),
    /// Packed in panels of 16 rows.
    Panels(&'a PackedMatrix),
}

impl<'a> From<Matrix<'a>> for Weights<'a> {
    fn from(matrix: Matrix<'a>) -> Self {
        Self::Rows(matrix)
    }
}

impl<'a> From<&'a PackedMatrix> for Weights<'a> {
    fn from(matrix: &'a PackedMatrix) -> Self {
        Self::Panels(matrix)
    }
}

impl Weights<'_> {
    /// The block format.
    #[must_use]
    pub const fn format(&self) -> Format {
        match self {
            Self::Rows(matrix) => matrix.format(),
            Self::Panels(matrix) => matrix.format(),
        }
    }

    /// The number of rows, which is the number of outputs.
    #[must_use]
    pub const fn rows(&self) -> usize {
        match self {
            Self::Rows(matrix) => matrix.rows(),
            Self::Panels(matrix) => matrix.rows(),
        }
    }

    /// The number of columns, which is the number of inputs.
    #[must_use]
    pub const fn columns(&self) -> usize {
        match self {
            Self::Rows(matrix) => matrix.columns(),
            Self::Panels(matrix) => matrix.columns(),
        }
    }

    /// The products of the rows in `rows` with `activations`: `out[i]` is that of row `rows.start + i`.
    ///
    /// Every product is one sequential sum over its blocks, [`q5_0::vec_dot`](crate::q5_0::vec_dot) or
    /// [`q8_0::vec_dot`](crate::q8_0::vec_dot), with the same bits at every level, in either form and
    /// for any range. Ranges that start and end at multiples of 16 are the quickest ones.
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
        self.check(activations, &rows, &(0..0))?;
        check_len("output", rows.len(), out.len())?;
        match self {
            Self::Rows(matrix) => gemv::rows::gemv(isa, *matrix, activations.view(), rows, out),
            Self::Panels(matrix) => {
                gemv::panels::gemv(isa, matrix.panels(), activations.view(), rows, out);
            }
        }
        Ok(())
    }

    /// The exact integer dot products of some block columns: `out[i * blocks.len() + j]` is that of row
    /// `rows.start + i` and block `blocks.start + j`.
    ///
    /// Only these blocks of `activations` are read. [`add_block_dots`](Self::add_block_dots) makes a row's
    /// product of them, so that those who own different columns can share a matrix and still give the
    /// bits of [`gemv`](Self::gemv).
    ///
    /// # Errors
    ///
    /// Rows or blocks that the matrix does not have; activations that are not as long as a row; an output
    /// that does not go with the ranges. `out` is then as it was.
    pub fn block_dots(
        &self,
        isa: Isa,
        activations: &QuantizedVector,
        rows: Range<usize>,
        blocks: Range<usize>,
        out: &mut [i32],
    ) -> Result<(), QuantError> {
        self.check(activations, &rows, &blocks)?;
        check_len("block dot products", rows.len().saturating_mul(blocks.len()), out.len())?;
        if out.is_empty() {
            return Ok(());
        }
        let x = activations.view().blocks(blocks.clone());
        let tile = Tile { rows, blocks };
        match self {
            Self::Rows(matrix) => gemv::rows::block_dots(isa, *matrix, x, tile, out),
            Self::Panels(matrix) => gemv::panels::block_dots(isa, matrix.panels(), x, tile, out),
        }
        Ok(())
    }

    /// Carries on the sums of `rows` with the integer dot products of `blocks`, in order:
    /// `out[i] = fma(weight_scale * activation_scale, dot as f32, out[i])`.
    ///
    /// `dots` is what [`block_dots`](Self::block_dots) wrote for the same ranges. From zeros and over all
    /// blocks, in one call or in several one after the other, `out` has the bits of [`gemv`](Self::gemv).
    ///
    /// # Errors
    ///
    /// Rows or blocks that the matrix does not have; activations that are not as long as a row; `dots` or
    /// `out` of a length that does not go with the ranges. `out` is then as it was.
    pub fn add_block_dots(
        &self,
        isa: Isa,
        activations: &QuantizedVector,
        rows: Range<usize>,
        blocks: Range<usize>,
        dots: &[i32],
        out: &mut [f32],
    ) -> Result<(), QuantError> {
        self.check(activations, &rows, &blocks)?;
        check_len("block dot products", rows.len().saturating_mul(blocks.len()), dots.len())?;
        check_len("output", rows.len(), out.len())?;
        let scales = &activations.scales()[blocks.clone()];
        let tile = Tile { rows, blocks };
        match self {
            Self::Rows(matrix) => gemv::rows::add_block_dots(*matrix, scales, &tile, dots, out),
            Self::Panels(matrix) => {
                gemv::panels::add_block_dots(isa, matrix.panels(), scales, tile, dots, out);
            }
        }
        Ok(())
    }

    /// Checks the ranges and the activations of a call.
    fn check(
        &self,
        activations: &QuantizedVector,
        rows: &Range<usize>,
        blocks: &Range<usize>,
    ) -> Result<(), QuantError> {
        let (start, end) = (rows.start, rows.end);
        if start > end || end > self.rows() {
            return Err(QuantError::Rows { rows: self.rows(), start, end });
        }
        let per_row = self.columns() / BLOCK_LEN;
        activations.check_blocks(per_row)?;
        let (start, end) = (blocks.start, blocks.end);
        if start > end || end > per_row {
            return Err(QuantError::Blocks { blocks: per_row, start, end });
        }
        Ok(())
    }
}

fn check_len(what: &'static str, expected: usize, found: usize) -> Result<(), QuantError> {
    if expected == found { Ok(()) } else { Err(QuantError::Length { what, expected, found }) }
}
