//! The layout of a Q8_0 block.

use crate::block::Block;
use half::f16;

/// 32 elements as one f16 scale and 32 signed bytes: element `j` is `scale * quants[j]`.
///
/// Every pattern of bytes is a valid block, -128 included. The alignment is 1, so that blocks can be
/// borrowed from a file at any offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct BlockQ8_0 {
    scale: [u8; 2],
    quants: [i8; 32],
}

const _: () = assert!(size_of::<BlockQ8_0>() == 34 && align_of::<BlockQ8_0>() == 1);

impl BlockQ8_0 {
    /// A block of these parts.
    #[must_use]
    pub const fn new(scale: f16, quants: [i8; 32]) -> Self {
        Self { scale: scale.to_le_bytes(), quants }
    }

    /// The scale.
    #[must_use]
    pub const fn scale(&self) -> f16 {
        f16::from_le_bytes(self.scale)
    }

    /// The quants in element order.
    #[must_use]
    pub const fn quants(&self) -> &[i8; 32] {
        &self.quants
    }
}

impl Block for BlockQ8_0 {
    #[inline(always)]
    fn scale(&self) -> f16 {
        self.scale()
    }

    #[inline(always)]
    fn quants(&self) -> [i8; 32] {
        self.quants
    }
}
