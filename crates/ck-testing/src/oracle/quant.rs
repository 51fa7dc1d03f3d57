//! Q5_0 and Q8_0: what the bytes mean, and which bytes a row of numbers becomes.

use super::{Rejected, Sum, reject_non_finite};
use half::f16;
use std::fmt;

/// Elements in a block of either format.
pub const BLOCK: usize = 32;

/// A block format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// 22 bytes: `f16` scale, 32 fifth bits, 16 bytes of two low nibbles each. Quants -16 to 15.
    Q5_0,
    /// 34 bytes: `f16` scale, 32 signed bytes.
    Q8_0,
}

impl Format {
    /// Both formats.
    pub const ALL: [Self; 2] = [Self::Q5_0, Self::Q8_0];

    /// Bytes of one block.
    #[must_use]
    pub fn block_bytes(self) -> usize {
        match self {
            Self::Q5_0 => 22,
            Self::Q8_0 => 34,
        }
    }

    /// Bytes of a row of `columns` elements.
    ///
    /// # Panics
    ///
    /// If `columns` is no multiple of [`BLOCK`].
    #[must_use]
    pub fn row_bytes(self, columns: usize) -> usize {
        assert_eq!(columns % BLOCK, 0, "{columns} columns are no whole number of blocks");
        columns / BLOCK * self.block_bytes()
    }

    /// The smallest and the largest quant that the bytes can hold.
    #[must_use]
    pub fn quant_range(self) -> (i8, i8) {
        match self {
            Self::Q5_0 => (-16, 15),
            Self::Q8_0 => (-128, 127),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Q5_0 => "q5_0",
            Self::Q8_0 => "q8_0",
        })
    }
}

/// A decoded block of either format: element j is `scale * quants[j]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// The stored scale.
    pub scale: f16,
    /// The signed quants in element order.
    pub quants: [i8; BLOCK],
}

impl Block {
    /// What the bytes of one block mean.
    ///
    /// In Q5_0, element j is the low nibble of byte j with bit j of the fifth bits above it, element j + 16
    /// the high nibble of byte j with bit j + 16, and 16 is subtracted from both.
    ///
    /// # Panics
    ///
    /// If `bytes` is not one block long.
    #[must_use]
    pub fn decode(format: Format, bytes: &[u8]) -> Self {
        assert_eq!(bytes.len(), format.block_bytes(), "bytes of one {format} block");
        let scale = f16::from_le_bytes([bytes[0], bytes[1]]);
        let mut quants = [0i8; BLOCK];
        match format {
            Format::Q5_0 => {
                let fifth = u32::from_le_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]);
                for (j, quant) in quants.iter_mut().enumerate() {
                    let pair = bytes[6 + j % 16];
                    let nibble = if j < 16 { pair & 15 } else { pair >> 4 };
                    let bit = ((fifth >> j) & 1) as u8;
                    *quant = (nibble | (bit << 4)) as i8 - 16;
                }
            }
            Format::Q8_0 => {
                for (quant, &byte) in quants.iter_mut().zip(&bytes[2..]) {
                    *quant = byte as i8;
                }
            }
        }
        Self { scale, quants }
    }

    /// The bytes of this block, which [`Block::decode`] reads back.
    ///
    /// # Panics
    ///
    /// If a quant is beyond [`Format::quant_range`].
    #[must_use]
    pub fn encode(&self, format: Format) -> Vec<u8> {
        let mut bytes = self.scale.to_le_bytes().to_vec();
        match format {
            Format::Q5_0 => {
                let (low, high) = format.quant_range();
                let mut fifth = 0u32;
                let mut pairs = [0u8; 16];
                for (j, &quant) in self.quants.iter().enumerate() {
                    assert!((low..=high).contains(&quant), "quant {quant} does not fit {format}");
                    let stored = (quant + 16) as u8;
                    fifth |= u32::from(stored >> 4) << j;
                    pairs[j % 16] |= (stored & 15) << if j < 16 { 0 } else { 4 };
                }
                bytes.extend(fifth.to_le_bytes());
                bytes.extend(pairs);
            }
            Format::Q8_0 => bytes.extend(self.quants.iter().map(|&quant| quant as u8)),
        }
        bytes
    }

    /// The 32 values, exact.
    #[must_use]
    pub fn values(&self) -> [f64; BLOCK] {
        self.quants.map(|quant| self.scale.to_f64() * f64::from(quant))
    }
}

/// The blocks of a row.
///
/// # Panics
///
/// If `bytes` is no whole number of blocks.
#[must_use]
pub fn decode_row(format: Format, bytes: &[u8]) -> Vec<Block> {
    assert_eq!(bytes.len() % format.block_bytes(), 0, "{} bytes of {format} blocks", bytes.len());
    bytes.chunks_exact(format.block_bytes()).map(|block| Block::decode(format, block)).collect()
}

/// The values of a row, exact.
///
/// # Panics
///
/// If `bytes` is no whole number of blocks.
#[must_use]
pub fn dequantize_row(format: Format, bytes: &[u8]) -> Vec<f64> {
    decode_row(format, bytes).iter().flat_map(Block::values).collect()
}

/// The bytes that the contract makes of a row.
///
/// Q8_0, in `f32`: `amax` is the largest magnitude of the block, the stored scale is `f16(amax / 127)`, and
/// the quants are `round_ties_even(x * (127 / amax))`. A block whose stored scale is zero is 34 zero bytes.
///
/// Q5_0, in `f32`: `max` is the signed value of the largest magnitude (the first of equals), `d = max / -16`
/// and `id = 1 / d`, the stored scale is `f16(d)`, and the stored quants are
/// `min(31, trunc(x * id + 16.5))`. A block whose stored scale is zero is the block of 32 zeros: scale
/// -0.0 (which is `0 / -16`), every quant 16 as stored.
///
/// # Errors
///
/// [`Rejected::PartialBlock`], [`Rejected::NonFinite`] and [`Rejected::ScaleOverflow`], in this order.
pub fn quantize_row(format: Format, row: &[f32]) -> Result<Vec<u8>, Rejected> {
    if !row.len().is_multiple_of(BLOCK) {
        return Err(Rejected::PartialBlock { len: row.len() });
    }
    reject_non_finite(row.iter().copied().map(f64::from))?;
    let mut bytes = Vec::new();
    for (index, values) in row.chunks_exact(BLOCK).enumerate() {
        let block = match format {
            Format::Q5_0 => q5_0_block(values),
            Format::Q8_0 => q8_0_block(values),
        };
        if block.scale.is_infinite() {
            return Err(Rejected::ScaleOverflow { block: index });
        }
        bytes.extend(block.encode(format));
    }
    Ok(bytes)
}

fn q8_0_block(values: &[f32]) -> Block {
    let mut amax = 0.0f32;
    for value in values {
        if value.abs() > amax {
            amax = value.abs();
        }
    }
    let scale = f16::from_f32(amax / 127.0);
    let mut quants = [0i8; BLOCK];
    if scale == f16::ZERO {
        return Block { scale: f16::ZERO, quants };
    }
    let inverse = 127.0 / amax;
    for (quant, value) in quants.iter_mut().zip(values) {
        *quant = (value * inverse).round_ties_even() as i8;
    }
    Block { scale, quants }
}

fn q5_0_block(values: &[f32]) -> Block {
    let mut max = 0.0f32;
    for &value in values {
        if value.abs() > max.abs() {
            max = value;
        }
    }
    let d = max / -16.0;
    let scale = f16::from_f32(d);
    let mut quants = [0i8; BLOCK];
    if scale == f16::ZERO {
        return Block { scale: f16::NEG_ZERO, quants };
    }
    let inverse = 1.0 / d;
    for (quant, value) in quants.iter_mut().zip(values) {
        let shifted = value * inverse + 16.5;
        *quant = (shifted.trunc() as i32).min(31) as i8 - 16;
    }
    Block { scale, quants }
}

/// The exact integer dot product of two blocks.
#[must_use]
pub fn block_dot(a: &Block, b: &Block) -> i64 {
    a.quants.iter().zip(&b.quants).map(|(&a, &b)| i64::from(a) * i64::from(b)).sum()
}

/// The dot product of two rows of blocks, one term per block.
///
/// Each term, scale times scale times integer, has at most 22 + 20 significant bits and is exact; only the
/// additions round, in `f64`.
///
/// # Panics
///
/// If the rows differ in length.
#[must_use]
pub fn row_dot(weights: &[Block], activations: &[Block]) -> Sum {
    assert_eq!(weights.len(), activations.len(), "blocks of the two rows");
    Sum::of(
        weights
            .iter()
            .zip(activations)
            .map(|(w, a)| w.scale.to_f64() * a.scale.to_f64() * block_dot(w, a) as f64),
    )
}
