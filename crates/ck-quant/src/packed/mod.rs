//! Weights rearranged once so that vector lanes are rows.

mod panel;
#[cfg(test)]
mod tests;

pub(crate) use panel::{AnyPanels, PANEL_ROWS, PanelBlock, PanelScales, Panels};

use crate::block::Block;
use crate::matrix::Blocks;
use crate::{BLOCK_LEN, Format, Isa, Matrix, QuantError, QuantizedVector, Weights};
use ck_pages::ZeroedSlice;
use std::fmt;
use std::ops::Range;

/// A matrix in panels of 16 rows: the fastest form, made once when weights are loaded.
///
/// Within a panel the quants of four columns in 16 rows lie together, so that one instruction multiplies
/// and adds for 16 rows, and a vector lane is a row from the first product to the result. The products have
/// the same bits as those of the [`Matrix`] that it was made from. docs/formats.md draws the layout.
///
/// It takes the matrix's own size, with the rows rounded up to a multiple of 16. On Linux, matrices of
/// 2 MiB and more ask for pages of 2 MiB, and take up to an eleventh more where that makes all pages large.
///
/// ```
/// use ck_quant::{Format, Isa, Matrix, PackedMatrix, QuantizedVector, Weights};
///
/// let bytes = Format::Q5_0.quantize(&[0.5; 20 * 64])?;
/// let matrix = Matrix::new(Format::Q5_0, 20, 64, &bytes)?;
/// let packed = PackedMatrix::pack(matrix)?;
///
/// let mut x = QuantizedVector::zeros(64)?;
/// x.quantize(Isa::detect(), &[1.0; 64])?;
/// let (mut a, mut b) = ([0.0; 20], [0.0; 20]);
/// Weights::from(matrix).gemv(Isa::detect(), &x, 0..20, &mut a)?;
/// Weights::from(&packed).gemv(Isa::detect(), &x, 0..20, &mut b)?;
/// assert_eq!(a, b);
/// # Ok::<(), ck_quant::QuantError>(())
/// ```
pub struct PackedMatrix {
    format: Format,
    rows: usize,
    columns: usize,
    /// The quants of all panel blocks, then the scales of all panel blocks.
    pages: ZeroedSlice<u8>,
    /// Where the scales begin.
    scales_at: usize,
}

/// From this many bytes on, panels are packed on rayon's threads: a millisecond of one thread's work.
#[cfg(feature = "rayon")]
const PARALLEL_FROM: usize = 1 << 20;

impl PackedMatrix {
    /// Rearranges `matrix`.
    ///
    /// With the feature `rayon` large matrices are packed on rayon's threads. Without it no thread is started.
    ///
    /// # Errors
    ///
    /// [`QuantError::Allocation`] where the memory is not to be had, [`QuantError::TooLarge`] where its size
    /// is beyond `usize`.
    pub fn pack(matrix: Matrix<'_>) -> Result<Self, QuantError> {
        match matrix.blocks() {
            Blocks::Q5_0(blocks) => Self::pack_blocks::<crate::q5_0::PanelQ5_0>(matrix, blocks),
            Blocks::Q8_0(blocks) => Self::pack_blocks::<crate::q8_0::PanelQ8_0>(matrix, blocks),
        }
    }

    fn pack_blocks<P: PanelBlock>(
        matrix: Matrix<'_>,
        blocks: &[P::Block],
    ) -> Result<Self, QuantError> {
        let (format, rows, columns) = (matrix.format(), matrix.rows(), matrix.columns());
        let per_row = columns / BLOCK_LEN;
        let sizes = rows.div_ceil(PANEL_ROWS).checked_mul(per_row).and_then(|panel_blocks| {
            let quants = panel_blocks.checked_mul(size_of::<P>())?;
            let scales = panel_blocks.checked_mul(size_of::<PanelScales>())?;
            Some((quants, quants.checked_add(scales)?))
        });
        let (scales_at, len) = sizes.ok_or(QuantError::TooLarge { format, rows, columns })?;
        let mut pages = ZeroedSlice::new(len).map_err(|_| QuantError::Allocation { bytes: len })?;
        if per_row > 0 {
            let (quants, scales) = pages.split_at_mut(scales_at);
            let quants: &mut [P] = bytemuck::cast_slice_mut(quants);
            let scales: &mut [PanelScales] = bytemuck::cast_slice_mut(scales);
            pack_panels(blocks, quants, scales, per_row);
        }
        Ok(Self { format, rows, columns, pages, scales_at })
    }

    /// The block format.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
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

    /// The bytes that the packed weights take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pages.bytes()
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
        Weights::from(self).gemv(isa, activations, rows, out)
    }

    pub(crate) fn panels(&self) -> AnyPanels<'_> {
        let (quants, scales) = self.pages.split_at(self.scales_at);
        let scales = bytemuck::cast_slice(scales);
        let per_row = self.columns / BLOCK_LEN;
        match self.format {
            Format::Q5_0 => {
                AnyPanels::Q5_0(Panels::new(bytemuck::cast_slice(quants), scales, per_row))
            }
            Format::Q8_0 => {
                AnyPanels::Q8_0(Panels::new(bytemuck::cast_slice(quants), scales, per_row))
            }
        }
    }
}

impl fmt::Debug for PackedMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackedMatrix")
            .field("format", &self.format)
            .field("rows", &self.rows)
            .field("columns", &self.columns)
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

/// Packs rows of `per_row` blocks each into zeroed panels. Lanes beyond the last row stay zero.
fn pack_panels<P: PanelBlock>(
    blocks: &[P::Block],
    quants: &mut [P],
    scales: &mut [PanelScales],
    per_row: usize,
) {
    let panel_len = per_row * PANEL_ROWS;
    #[cfg(feature = "rayon")]
    if size_of_val(blocks) >= PARALLEL_FROM {
        use rayon::prelude::*;
        quants
            .par_chunks_mut(per_row)
            .zip(scales.par_chunks_mut(per_row))
            .zip(blocks.par_chunks(panel_len))
            .for_each(|((quants, scales), rows)| pack_panel(rows, quants, scales));
        return;
    }
    quants
        .chunks_mut(per_row)
        .zip(scales.chunks_mut(per_row))
        .zip(blocks.chunks(panel_len))
        .for_each(|((quants, scales), rows)| pack_panel(rows, quants, scales));
}

/// Packs up to 16 rows into one zeroed panel.
fn pack_panel<P: PanelBlock>(rows: &[P::Block], quants: &mut [P], scales: &mut [PanelScales]) {
    for (row, blocks) in rows.chunks(quants.len()).enumerate() {
        for ((block, quants), scales) in blocks.iter().zip(&mut *quants).zip(&mut *scales) {
            quants.pack(row, block);
            scales[row] = block.scale();
        }
    }
}
