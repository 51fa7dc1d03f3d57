//! The layout of a Q5_0 block.

use crate::block::Block;
use half::f16;

/// 32 elements as one f16 scale and 32 quants of 5 bits, stored with an offset of 16.
///
/// The low four bits of element `j` are the low nibble of byte `j`, those of element `j + 16` the high
/// nibble of byte `j`; the fifth bit of element `j` is bit `j` of the little-endian word of high bits.
/// Element `j` is `scale * (bits - 16)`.
///
/// Every pattern of bytes is a valid block. The alignment is 1, so that blocks can be borrowed from a
/// file at any offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct BlockQ5_0 {
    scale: [u8; 2],
    high_bits: [u8; 4],
    nibbles: [u8; 16],
}

const _: () = assert!(size_of::<BlockQ5_0>() == 22 && align_of::<BlockQ5_0>() == 1);

impl BlockQ5_0 {
    /// What is subtracted from the five stored bits.
    pub const OFFSET: i32 = 16;

    /// A block of a scale and 32 stored values, of which the low five bits count.
    #[must_use]
    pub fn new(scale: f16, stored: [u8; 32]) -> Self {
        let mut high_bits = 0u32;
        let mut nibbles = [0; 16];
        for (j, bits) in stored.into_iter().enumerate() {
            high_bits |= u32::from(bits >> 4 & 1) << j;
            nibbles[j % 16] |= (bits & 15) << (j / 16 * 4);
        }
        Self { scale: scale.to_le_bytes(), high_bits: high_bits.to_le_bytes(), nibbles }
    }

    /// The scale.
    #[must_use]
    pub const fn scale(&self) -> f16 {
        f16::from_le_bytes(self.scale)
    }

    /// The fifth bit of every element, element `j` at bit `j`.
    #[must_use]
    pub const fn high_bits(&self) -> u32 {
        u32::from_le_bytes(self.high_bits)
    }

    /// The low four bits: elements 0 to 15 in the low nibbles, 16 to 31 in the high ones.
    #[must_use]
    pub const fn nibbles(&self) -> &[u8; 16] {
        &self.nibbles
    }

    /// The stored values 0 to 31 in element order, the offset of 16 still in them.
    #[inline(always)]
    #[must_use]
    pub fn stored(&self) -> [u8; 32] {
        let mut stored = [0; 32];
        let (low, high) = stored.split_at_mut(16);
        for ((low, high), nibbles) in low.iter_mut().zip(high).zip(self.nibbles) {
            (*low, *high) = (nibbles & 15, nibbles >> 4);
        }
        for (eight, bits) in stored.as_chunks_mut::<8>().0.iter_mut().zip(self.high_bits) {
            let with_high_bits = u64::from_le_bytes(*eight) | spread(bits);
            *eight = with_high_bits.to_le_bytes();
        }
        stored
    }

    /// The quants -16 to 15 in element order.
    #[inline(always)]
    #[must_use]
    pub fn quants(&self) -> [i8; 32] {
        self.stored().map(|bits| bits as i8 - Self::OFFSET as i8)
    }
}

impl Block for BlockQ5_0 {
    #[inline(always)]
    fn scale(&self) -> f16 {
        self.scale()
    }

    #[inline(always)]
    fn quants(&self) -> [i8; 32] {
        Self::quants(self)
    }
}

/// Bit `i` of a byte as the fifth bit of byte `i`.
///
/// The byte is copied to all eight, and each copy keeps one bit. Adding 127 to a byte that is not zero carries
/// into its top bit, and no byte carries further: the kept bit is at most 128.
#[inline(always)]
fn spread(bits: u8) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const DIAGONAL: u64 = 0x8040_2010_0804_0201;
    let kept = (u64::from(bits) * ONES) & DIAGONAL;
    ((kept + 0x7f * ONES) & (0x80 * ONES)) >> 3
}
