//! Cache elements of 8 bits, 32 of which share a scale.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512vnni;
#[cfg(target_arch = "aarch64")]
mod neondot;
mod scalar;
mod wide;

use super::DIM_BLOCK;
use super::element::{CacheElement, Element};
use crate::OpError;
use crate::finite::check_range;
use crate::flash_decode::{ChunkView, HeadBlock, attend_block};
use bytemuck::{Pod, Zeroable};
use ck_isa::{Isa, Vectors};
use half::f16;

/// An element of a cache in blocks of Q8_0: the quant, whose scale the cache keeps beside it.
///
/// Each 32 neighbouring dimensions of a head are a block: an `f16` scale and 32 signed bytes, whose products are the
/// numbers. A head's dimension must be a multiple of 32.
///
/// ```
/// use ck_isa::Isa;
/// use ck_ops::{CacheShape, KvCache, NewPosition, OpError, Q8_0};
///
/// let shape = CacheShape::new(1, 32)?;
/// let mut cache = KvCache::<Q8_0>::with_capacity(shape, 1)?;
/// let mut new = NewPosition::new(shape)?;
/// let mut key = [0.26; 32];
/// key[0] = 127.0; // The largest magnitude, so that the scale is 1.
/// new.set(Isa::detect(), &key, &[1.0; 32])?;
/// cache.append(&new)?;
/// cache.key(0, 0, &mut key)?;
/// assert_eq!(key[..2], [127.0, 0.0]);
///
/// let too_narrow = KvCache::<Q8_0>::with_capacity(CacheShape::new(1, 48)?, 1);
/// assert!(matches!(too_narrow, Err(OpError::HeadDimBlock { head_dim: 48, .. })));
/// # Ok::<(), OpError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Q8_0(i8);

/// The smallest magnitude whose block has a scale that rounds to infinity: 127 times halfway from the largest `f16`,
/// 65504, to the next power of two. The quotient is 65520 exactly, and the next smaller `f32` over 127 rounds below it.
const OVERFLOW: f32 = 127.0 * 65_520.0;

/// Bytes of a block in a saved cache: the scale and the quants.
const BLOCK_BYTES: usize = 2 + DIM_BLOCK;

impl CacheElement for Q8_0 {}

impl Element for Q8_0 {
    const NAME: &'static str = "q8_0";
    const CODE: u32 = 2;
    const IS_SCALED: bool = true;

    fn check(what: &'static str, row: &[f32]) -> Result<(), OpError> {
        check_range(what, row, OVERFLOW, Self::NAME)
    }

    fn round(isa: Isa, row: &[f32], elements: &mut [Self], scales: &mut [f16]) {
        let (blocks, rest) = row.as_chunks::<DIM_BLOCK>();
        debug_assert!(rest.is_empty(), "the shape was checked");
        let (quants, _) = bytemuck::must_cast_slice_mut::<_, i8>(elements).as_chunks_mut();
        for ((block, quants), scale) in blocks.iter().zip(quants).zip(scales) {
            match isa {
                Isa::Scalar => scalar::round(block, quants, scale),
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the token proves the features that the function names.
                Isa::Avx2(token) => unsafe { avx2::round(token, block, quants, scale) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the token proves the features that the function names.
                Isa::Avx512Vnni(token) => unsafe { avx512vnni::round(token, block, quants, scale) },
                #[cfg(target_arch = "aarch64")]
                // SAFETY: the token proves the features that the function names.
                Isa::NeonDot(token) => unsafe { neondot::round(token, block, quants, scale) },
            }
        }
    }

    #[cfg(test)]
    fn filler(_value: f16) -> Self {
        Self(1)
    }

    #[inline(always)]
    fn widen(self, scale: f16) -> f32 {
        // Exact: 8 bits times 11.
        f32::from(self.0) * scale.to_f32()
    }

    fn stored_bytes(elements: usize) -> usize {
        elements / DIM_BLOCK * BLOCK_BYTES
    }

    fn put(elements: &[Self], scale: f16, bytes: &mut Vec<u8>) {
        bytes.extend(scale.to_le_bytes());
        bytes.extend_from_slice(bytemuck::must_cast_slice(elements));
    }

    fn take(bytes: &[u8], elements: &mut [Self], scales: &mut [f16]) -> bool {
        let blocks = bytes.as_chunks::<BLOCK_BYTES>().0.iter();
        for ((block, elements), scale) in
            blocks.zip(elements.chunks_mut(DIM_BLOCK)).zip(&mut *scales)
        {
            *scale = f16::from_le_bytes([block[0], block[1]]);
            elements.copy_from_slice(bytemuck::must_cast_slice(&block[2..]));
        }
        scales.iter().all(|scale| scale.is_finite())
    }

    #[inline(always)]
    fn load<V: Vectors>(v: V, from: &[Self]) -> V::F32 {
        v.load_i8(bytemuck::must_cast_slice(from))
    }

    fn attend_block(isa: Isa, view: &ChunkView<'_, Self>, block: HeadBlock<'_, '_>) -> bool {
        attend_block(isa, view, block)
    }
}
