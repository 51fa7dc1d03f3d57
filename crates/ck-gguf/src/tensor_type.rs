//! The element types of tensors: number, name and size of each.

use std::fmt;

/// How a tensor's elements are stored.
///
/// Rows are whole blocks: `block_len` elements in `block_bytes` bytes. The numbers, names and sizes are
/// those of ggml.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    number: u32,
    name: &'static str,
    block_len: u16,
    block_bytes: u16,
}

impl TensorType {
    /// 32-bit floating point.
    pub const F32: Self = Self::new(0, "F32", 1, 4);
    /// 16-bit floating point.
    pub const F16: Self = Self::new(1, "F16", 1, 2);
    /// Blocks of 32 five-bit quants and an f16 scale.
    pub const Q5_0: Self = Self::new(6, "Q5_0", 32, 22);
    /// Blocks of 32 eight-bit quants and an f16 scale.
    pub const Q8_0: Self = Self::new(8, "Q8_0", 32, 34);

    /// Every type whose size is known, by number.
    ///
    /// Only four of them can be read here. The others are listed so that files which hold them
    /// open, with every range checked. Numbers that are absent were withdrawn by ggml, or are newer.
    const ALL: [Self; 34] = [
        Self::F32,
        Self::F16,
        Self::new(2, "Q4_0", 32, 18),
        Self::new(3, "Q4_1", 32, 20),
        Self::Q5_0,
        Self::new(7, "Q5_1", 32, 24),
        Self::Q8_0,
        Self::new(9, "Q8_1", 32, 36),
        Self::new(10, "Q2_K", 256, 84),
        Self::new(11, "Q3_K", 256, 110),
        Self::new(12, "Q4_K", 256, 144),
        Self::new(13, "Q5_K", 256, 176),
        Self::new(14, "Q6_K", 256, 210),
        Self::new(15, "Q8_K", 256, 292),
        Self::new(16, "IQ2_XXS", 256, 66),
        Self::new(17, "IQ2_XS", 256, 74),
        Self::new(18, "IQ3_XXS", 256, 98),
        Self::new(19, "IQ1_S", 256, 50),
        Self::new(20, "IQ4_NL", 32, 18),
        Self::new(21, "IQ3_S", 256, 110),
        Self::new(22, "IQ2_S", 256, 82),
        Self::new(23, "IQ4_XS", 256, 136),
        Self::new(24, "I8", 1, 1),
        Self::new(25, "I16", 1, 2),
        Self::new(26, "I32", 1, 4),
        Self::new(27, "I64", 1, 8),
        Self::new(28, "F64", 1, 8),
        Self::new(29, "IQ1_M", 256, 56),
        Self::new(30, "BF16", 1, 2),
        Self::new(34, "TQ1_0", 256, 54),
        Self::new(35, "TQ2_0", 256, 66),
        Self::new(39, "MXFP4", 32, 17),
        Self::new(40, "NVFP4", 64, 36),
        Self::new(41, "Q1_0", 128, 18),
    ];

    const fn new(number: u32, name: &'static str, block_len: u16, block_bytes: u16) -> Self {
        Self { number, name, block_len, block_bytes }
    }

    /// The type with this number in a file, if its size is known here.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.number == number)
    }

    /// The number that stands for this type in a file.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }

    /// The name that ggml gives it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Elements in a block.
    #[must_use]
    pub const fn block_len(self) -> usize {
        self.block_len as usize
    }

    /// Bytes of a block.
    #[must_use]
    pub const fn block_bytes(self) -> usize {
        self.block_bytes as usize
    }

    /// The bytes of `rows` rows of `columns` elements.
    ///
    /// `None` if a row is not whole blocks or the number does not fit. All in 64 bits: row 255999 of a
    /// Q8_0 matrix of 12288 columns begins beyond `i32::MAX`.
    ///
    /// ```
    /// # use ck_gguf::TensorType;
    /// assert_eq!(TensorType::Q8_0.byte_size(12288, 255999), Some(3342322944));
    /// assert_eq!(TensorType::Q8_0.byte_size(48, 1), None);
    /// ```
    #[must_use]
    pub fn byte_size(self, columns: u64, rows: u64) -> Option<u64> {
        let block_len = u64::from(self.block_len);
        if !columns.is_multiple_of(block_len) {
            return None;
        }
        (columns / block_len).checked_mul(self.block_bytes.into())?.checked_mul(rows)
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ascend_and_are_found() {
        assert!(TensorType::ALL.windows(2).all(|pair| pair[0].number < pair[1].number));
        for known in TensorType::ALL {
            assert_eq!(TensorType::from_number(known.number()), Some(known));
        }
        for absent in [4, 5, 31, 33, 36, 38, 42, 255, u32::MAX] {
            assert_eq!(TensorType::from_number(absent), None, "{absent}");
        }
    }

    // Case B13: offsets beyond 31 bits. Case B48: sizes that would wrap.
    #[test]
    fn sizes_are_checked_in_64_bits() {
        assert_eq!(TensorType::Q8_0.byte_size(12288, 255_999), Some(3_342_322_944));
        assert_eq!(TensorType::Q8_0.byte_size(1 << 59, 1), Some(612_489_549_322_387_456));
        assert_eq!(TensorType::Q8_0.byte_size(1 << 32, 1 << 32), None);
        assert_eq!(TensorType::F32.byte_size((1 << 63) - 1, 2), None);
        assert_eq!(TensorType::F32.byte_size(4_611_686_018_427_387_903, 1), Some(u64::MAX - 3));
        assert_eq!(TensorType::Q8_0.byte_size(48, 1), None);
    }
}
