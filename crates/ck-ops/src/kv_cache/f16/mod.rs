//! Cache elements of 16 bits.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512vnni;
#[cfg(target_arch = "aarch64")]
mod neondot;
mod scalar;
mod wide;

use super::element::{CacheElement, Element};
use crate::OpError;
use crate::finite::check_range;
use crate::flash_decode::{ChunkView, HeadBlock, attend_block};
use ck_isa::{Isa, Vectors};
use half::f16;

/// The smallest magnitude that rounds to infinity in `f16`: halfway from its largest number, 65504, to the next
/// power of two, which is the even neighbour.
const OVERFLOW: f32 = 65_520.0;

impl CacheElement for f16 {}

impl Element for f16 {
    const NAME: &'static str = "f16";
    const CODE: u32 = 1;
    const IS_SCALED: bool = false;

    fn check(what: &'static str, row: &[f32]) -> Result<(), OpError> {
        check_range(what, row, OVERFLOW, Self::NAME)
    }

    fn round(isa: Isa, row: &[f32], elements: &mut [Self], _scales: &mut [f16]) {
        match isa {
            Isa::Scalar => scalar::round(row, elements),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the token proves the features that the function names.
            Isa::Avx2(token) => unsafe { avx2::round(token, row, elements) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the token proves the features that the function names.
            Isa::Avx512Vnni(token) => unsafe { avx512vnni::round(token, row, elements) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: the token proves the features that the function names.
            Isa::NeonDot(token) => unsafe { neondot::round(token, row, elements) },
        }
    }

    #[cfg(test)]
    fn filler(value: f16) -> Self {
        value
    }

    #[inline(always)]
    fn widen(self, _scale: f16) -> f32 {
        self.to_f32()
    }

    fn stored_bytes(elements: usize) -> usize {
        2 * elements
    }

    fn put(elements: &[Self], _scale: f16, bytes: &mut Vec<u8>) {
        bytes.extend(elements.iter().flat_map(|element| element.to_le_bytes()));
    }

    fn take(bytes: &[u8], elements: &mut [Self], _scales: &mut [f16]) -> bool {
        for (element, bytes) in elements.iter_mut().zip(bytes.as_chunks().0) {
            *element = Self::from_le_bytes(*bytes);
        }
        elements.iter().all(|element| element.is_finite())
    }

    #[inline(always)]
    fn load<V: Vectors>(v: V, from: &[Self]) -> V::F32 {
        v.load_f16(bytemuck::must_cast_slice(from))
    }

    fn attend_block(isa: Isa, view: &ChunkView<'_, Self>, block: HeadBlock<'_, '_>) -> bool {
        attend_block(isa, view, block)
    }
}
