//! What a cache may be made of.

use crate::OpError;
use crate::finite::check_finite;
use crate::flash_decode::{ChunkView, HeadBlock, attend_block};
use bytemuck::Pod;
use ck_isa::{Isa, Vectors};
use half::f16;

/// An element type of a [`KvCache`](crate::KvCache): `f32`, [`half::f16`] or [`Q8_0`](crate::Q8_0).
///
/// A row is rounded to the element type once, ties to even, when it is [set](crate::NewPosition::set);
/// elements become `f32` again exactly. The trait is sealed.
pub trait CacheElement: Element {}

/// What [`CacheElement`] means inside this crate.
pub trait Element: Pod + PartialEq + Send + Sync {
    /// The type's name in error messages.
    const NAME: &'static str;

    /// The type's number in saved caches.
    const CODE: u32;

    /// Whether [`DIM_BLOCK`](super::DIM_BLOCK) elements share a scale, or are numbers by themselves.
    const IS_SCALED: bool;

    /// Whether `row` can be rounded to this type: finite, and within its range.
    fn check(what: &'static str, row: &[f32]) -> Result<(), OpError>;

    /// Rounds `row`, which passed [`check`](Self::check). `scales` has one element per block.
    fn round(isa: Isa, row: &[f32], elements: &mut [Self], scales: &mut [f16]);

    /// The element that stands for `value` where unused memory is filled in tests.
    #[cfg(test)]
    fn filler(value: f16) -> Self;

    /// The element as `f32`, exactly. `scale` is its block's scale, or one.
    fn widen(self, scale: f16) -> f32;

    /// How many bytes a row of so many elements takes in a saved cache.
    fn stored_bytes(elements: usize) -> usize;

    /// Writes some elements that share a scale, or need none.
    fn put(elements: &[Self], scale: f16, bytes: &mut Vec<u8>);

    /// Reads what [`put`](Self::put) wrote of a row of elements; whether all of it is finite.
    fn take(bytes: &[u8], elements: &mut [Self], scales: &mut [f16]) -> bool;

    /// The first elements of `from`, as many as a vector has lanes, as `f32`, exactly but for their scales.
    fn load<V: Vectors>(v: V, from: &[Self]) -> V::F32;

    /// [`attend_block`], compiled for this type. Every implementation calls it: so it is compiled here, and not
    /// again in every crate that attends.
    fn attend_block(isa: Isa, view: &ChunkView<'_, Self>, block: HeadBlock<'_, '_>) -> bool;
}

impl CacheElement for f32 {}

impl Element for f32 {
    const NAME: &'static str = "f32";
    const CODE: u32 = 0;
    const IS_SCALED: bool = false;

    fn check(what: &'static str, row: &[f32]) -> Result<(), OpError> {
        check_finite(what, row)
    }

    fn round(_isa: Isa, row: &[f32], elements: &mut [Self], _scales: &mut [f16]) {
        elements.copy_from_slice(row);
    }

    #[cfg(test)]
    fn filler(value: f16) -> Self {
        value.to_f32()
    }

    #[inline(always)]
    fn widen(self, _scale: f16) -> f32 {
        self
    }

    fn stored_bytes(elements: usize) -> usize {
        4 * elements
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
        v.load(from)
    }

    fn attend_block(isa: Isa, view: &ChunkView<'_, Self>, block: HeadBlock<'_, '_>) -> bool {
        attend_block(isa, view, block)
    }
}
