//! What a cache may be made of.

use crate::OpError;
use crate::finite::check_finite;
use bytemuck::Pod;
use ck_isa::Isa;
use half::f16;

/// An element type of a [`KvCache`](crate::KvCache): `f32` or [`half::f16`].
///
/// A row is rounded to the element type once, ties to even, when it is [set](crate::NewPosition::set);
/// elements become `f32` again exactly. The trait is sealed.
pub trait CacheElement: Element {}

/// What [`CacheElement`] means inside this crate.
pub trait Element: Pod + PartialEq + Send + Sync {
    /// The type's name in error messages.
    const NAME: &'static str;

    /// Dimensions of a head that share one scale; none for elements that are numbers by themselves.
    const SCALE_BLOCK: Option<usize>;

    /// Whether `row` can be rounded to this type: finite, and within its range.
    fn check(isa: Isa, what: &'static str, row: &[f32]) -> Result<(), OpError>;

    /// Rounds `row`, which passed [`check`](Self::check). `scales` has one element per block.
    fn round(isa: Isa, row: &[f32], elements: &mut [Self], scales: &mut [f16]);

    /// The element that stands for `value` where unused memory is filled in tests.
    #[cfg(test)]
    fn filler(value: f16) -> Self;

    /// The element as `f32`, exactly. `scale` is its block's scale, or one.
    fn widen(self, scale: f16) -> f32;
}

impl CacheElement for f32 {}

impl Element for f32 {
    const NAME: &'static str = "f32";
    const SCALE_BLOCK: Option<usize> = None;

    fn check(isa: Isa, what: &'static str, row: &[f32]) -> Result<(), OpError> {
        check_finite(isa, what, row)
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
}

impl CacheElement for f16 {}

/// The smallest magnitude that rounds to infinity in `f16`: halfway from its largest number, 65504, to the next
/// power of two, which is the even neighbour.
const F16_OVERFLOW: f32 = 65_520.0;

impl Element for f16 {
    const NAME: &'static str = "f16";
    const SCALE_BLOCK: Option<usize> = None;

    fn check(isa: Isa, what: &'static str, row: &[f32]) -> Result<(), OpError> {
        check_finite(isa, what, row)?;
        match row.iter().position(|value| value.abs() >= F16_OVERFLOW) {
            None => Ok(()),
            Some(index) => {
                let (value, element) = (row[index], Self::NAME);
                Err(OpError::BeyondRange { what, index, value, element })
            }
        }
    }

    fn round(_isa: Isa, row: &[f32], elements: &mut [Self], _scales: &mut [f16]) {
        for (element, &value) in elements.iter_mut().zip(row) {
            *element = Self::from_f32(value);
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
}
