//! A vector of activations, quantized to Q8_0 and laid out for the kernels.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512vnni;
#[cfg(target_arch = "aarch64")]
mod neondot;
mod scalar;
#[cfg(test)]
mod tests;

use crate::block::whole_blocks;
use crate::{BLOCK_LEN, BlockQ8_0, Isa, QuantError, q8_0};
use std::ops::Range;

/// A vector quantized to Q8_0, held as separate scales, quants and block sums.
///
/// The numbers are those of [`q8_0::quantize_row`]; the scales are kept as `f32`, which holds every f16
/// exactly. The sum of a block's quants removes the offset of weights that a kernel keeps unsigned.
#[derive(Clone, Debug)]
pub struct QuantizedVector {
    scales: Vec<f32>,
    quants: Vec<[i8; BLOCK_LEN]>,
    corrections: Vec<i32>,
    /// Where a call notes what it needs of every block before it may change anything.
    notes: Vec<f32>,
}

impl PartialEq for QuantizedVector {
    fn eq(&self, other: &Self) -> bool {
        self.scales == other.scales && self.quants == other.quants
    }
}

/// `len` zeros, where there is memory for them.
pub(crate) fn zeros<T: bytemuck::Zeroable>(len: usize) -> Result<Vec<T>, QuantError> {
    let bytes = len.saturating_mul(size_of::<T>());
    bytemuck::allocation::try_zeroed_vec(len).map_err(|()| QuantError::Allocation { bytes })
}

/// A shared view of some blocks of a [`QuantizedVector`].
#[derive(Clone, Copy)]
pub(crate) struct Activations<'a> {
    pub(crate) scales: &'a [f32],
    pub(crate) quants: &'a [[i8; BLOCK_LEN]],
    /// -128 times the sum of each block's quants: what unsigned weights with an offset of 128 add too
    /// much, with its sign changed. Of 8 times a Q5_0 quant the offset is 128 as well.
    pub(crate) corrections: &'a [i32],
}

/// Where quantized blocks go, all of the same length.
///
/// A level's `quantize` first looks at all values. If one is not finite or too large it returns `false` and
/// has written nothing but notes; otherwise it fills the rest.
struct Target<'a> {
    scales: &'a mut [f32],
    quants: &'a mut [[i8; BLOCK_LEN]],
    corrections: &'a mut [i32],
    notes: &'a mut [f32],
}

impl Activations<'_> {
    /// The number of blocks.
    pub(crate) fn len(&self) -> usize {
        self.quants.len()
    }

    /// Only the blocks of a range.
    pub(crate) fn blocks(&self, range: Range<usize>) -> Self {
        Self {
            scales: &self.scales[range.clone()],
            quants: &self.quants[range.clone()],
            corrections: &self.corrections[range],
        }
    }
}

impl QuantizedVector {
    /// `len` zeros. The only allocation: the vector is filled again and again by
    /// [`quantize`](Self::quantize).
    ///
    /// # Errors
    ///
    /// [`QuantError::NotBlocks`] where `len` is no multiple of 32, [`QuantError::Allocation`] where there is no
    /// memory for them.
    pub fn zeros(len: usize) -> Result<Self, QuantError> {
        if !len.is_multiple_of(BLOCK_LEN) {
            return Err(QuantError::NotBlocks { what: "activations", len });
        }
        let blocks = len / BLOCK_LEN;
        Ok(Self {
            scales: zeros(blocks)?,
            quants: zeros(blocks)?,
            corrections: zeros(blocks)?,
            notes: zeros(blocks)?,
        })
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.quants.len() * BLOCK_LEN
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.quants.is_empty()
    }

    /// The scale of every block.
    #[must_use]
    pub fn scales(&self) -> &[f32] {
        &self.scales
    }

    /// The quants of every block.
    #[must_use]
    pub fn quants(&self) -> &[[i8; BLOCK_LEN]] {
        &self.quants
    }

    /// Quantizes `values` into this vector, as [`q8_0::quantize_row`] does.
    ///
    /// # Errors
    ///
    /// A length other than [`len`](Self::len); a number that is not finite or too large for an f16 scale.
    /// The vector is then as it was.
    pub fn quantize(&mut self, isa: Isa, values: &[f32]) -> Result<(), QuantError> {
        self.quantize_blocks(isa, 0..self.quants.len(), values)
    }

    /// Quantizes `values` into the blocks of a range, and leaves the others as they are.
    ///
    /// # Errors
    ///
    /// Blocks that the vector does not have; a number of values other than 32 for each; a number that is
    /// not finite or too large for an f16 scale. The vector is then as it was.
    pub fn quantize_blocks(
        &mut self,
        isa: Isa,
        blocks: Range<usize>,
        values: &[f32],
    ) -> Result<(), QuantError> {
        let (start, end) = (blocks.start, blocks.end);
        if start > end || end > self.quants.len() {
            return Err(QuantError::Blocks { blocks: self.quants.len(), start, end });
        }
        let values = whole_blocks(values, blocks.len())?;
        let target = Target {
            scales: &mut self.scales[blocks.clone()],
            quants: &mut self.quants[blocks.clone()],
            corrections: &mut self.corrections[blocks.clone()],
            notes: &mut self.notes[blocks],
        };
        let fits = match isa {
            Isa::Scalar => scalar::quantize(values, target),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the token proves the level's features, and the function enables no others.
            Isa::Avx2(_) => unsafe { avx2::quantize(values, target) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the token proves the level's features, and the function enables no others.
            Isa::Avx512Vnni(_) => unsafe { avx512vnni::quantize(values, target) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: the token proves the level's features, and the function enables no others.
            Isa::NeonDot(_) => unsafe { neondot::quantize(values, target) },
        };
        if fits { Ok(()) } else { q8_0::check(values.as_flattened()) }
    }

    /// Takes over blocks that are quantized already.
    ///
    /// # Errors
    ///
    /// A number of blocks other than this vector's; a scale that is not finite. The vector is then as it was.
    pub fn set_blocks(&mut self, blocks: &[BlockQ8_0]) -> Result<(), QuantError> {
        self.check_blocks(blocks.len())?;
        if let Some(block) = blocks.iter().position(|block| !block.scale().is_finite()) {
            let scale = blocks[block].scale().to_f32();
            return Err(QuantError::BlockScale { row: 0, block, scale });
        }
        for (index, block) in blocks.iter().enumerate() {
            self.set_block(index, block);
        }
        Ok(())
    }

    fn set_block(&mut self, index: usize, block: &BlockQ8_0) {
        self.scales[index] = block.scale().to_f32();
        self.quants[index] = *block.quants();
        self.corrections[index] = correction(block.quants());
    }

    pub(crate) fn view(&self) -> Activations<'_> {
        Activations { scales: &self.scales, quants: &self.quants, corrections: &self.corrections }
    }

    /// Checks that rows of `blocks` blocks go with this vector.
    pub(crate) fn check_blocks(&self, blocks: usize) -> Result<(), QuantError> {
        if blocks == self.quants.len() {
            return Ok(());
        }
        let expected = blocks.saturating_mul(BLOCK_LEN);
        Err(QuantError::Length { what: "activations", expected, found: self.len() })
    }
}

/// -128 times the sum of a block's quants.
fn correction(quants: &[i8; BLOCK_LEN]) -> i32 {
    -128 * quants.iter().map(|quant| i32::from(*quant)).sum::<i32>()
}
