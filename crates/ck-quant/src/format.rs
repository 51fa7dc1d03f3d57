//! The two block formats and the arithmetic of their sizes.

use crate::activations::zeros;
use crate::{BlockQ5_0, BlockQ8_0, QuantError};
use std::fmt;

/// Elements in a block, for both formats.
pub const BLOCK_LEN: usize = 32;

/// A block format of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// 5-bit quants and one f16 scale: 22 bytes for 32 elements.
    Q5_0,
    /// 8-bit quants and one f16 scale: 34 bytes for 32 elements.
    Q8_0,
}

impl Format {
    /// The name as GGUF files and their tools write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Q5_0 => "Q5_0",
            Self::Q8_0 => "Q8_0",
        }
    }

    /// Bytes of one block of 32 elements.
    #[must_use]
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::Q5_0 => size_of::<BlockQ5_0>(),
            Self::Q8_0 => size_of::<BlockQ8_0>(),
        }
    }

    /// Bytes of a matrix of `rows` rows and `columns` columns, which is also where row number `rows` of a
    /// longer matrix begins.
    ///
    /// # Errors
    ///
    /// [`QuantError::NotBlocks`] where `columns` is no multiple of 32, [`QuantError::TooLarge`] where the
    /// size is beyond `usize`.
    pub fn matrix_bytes(self, rows: usize, columns: usize) -> Result<usize, QuantError> {
        if !columns.is_multiple_of(BLOCK_LEN) {
            return Err(QuantError::NotBlocks { what: "columns", len: columns });
        }
        (columns / BLOCK_LEN)
            .checked_mul(self.block_bytes())
            .and_then(|row_bytes| row_bytes.checked_mul(rows))
            .ok_or(QuantError::TooLarge { format: self, rows, columns })
    }

    /// Quantizes `values`, one or more rows, to this format's bytes.
    ///
    /// ```
    /// use ck_quant::Format;
    ///
    /// let bytes = Format::Q5_0.quantize(&[1.0; 64])?;
    /// assert_eq!(bytes.len(), 44);
    /// # Ok::<(), ck_quant::QuantError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A length that is no multiple of 32; a number that is not finite or too large for an f16 scale;
    /// [`QuantError::Allocation`].
    pub fn quantize(self, values: &[f32]) -> Result<Vec<u8>, QuantError> {
        let mut bytes = zeros::<u8>(self.matrix_bytes(1, values.len())?)?;
        match self {
            Self::Q5_0 => crate::q5_0::quantize_row(values, bytemuck::cast_slice_mut(&mut bytes))?,
            Self::Q8_0 => crate::q8_0::quantize_row(values, bytemuck::cast_slice_mut(&mut bytes))?,
        }
        Ok(bytes)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;
    use crate::{q5_0, q8_0};
    use ck_testing::generate::{Rng, Values};
    use ck_testing::oracle;

    // Case B08: among the rows are those whose largest value is negative, or stands twice with both signs.
    #[test]
    fn rows_of_every_kind_have_the_bytes_and_the_values_of_the_oracle() {
        let mut rng = Rng::new(13);
        for format in Case::FORMATS {
            let theirs = Case::oracle_format(format);
            for kind in Values::QUANTIZABLE {
                let row = kind.row(&mut rng, 20 * BLOCK_LEN);
                let bytes = format.quantize(&row).ok();
                assert_eq!(bytes, oracle::quantize_row(theirs, &row).ok(), "{format}, {kind:?}");
                let Some(bytes) = bytes else { continue };
                let mut values = vec![f32::NAN; row.len()];
                match format {
                    Format::Q5_0 => q5_0::dequantize_row(bytemuck::cast_slice(&bytes), &mut values),
                    Format::Q8_0 => q8_0::dequantize_row(bytemuck::cast_slice(&bytes), &mut values),
                }
                .unwrap();
                // The product of a half and a byte is exact in f32.
                let values: Vec<f64> = values.into_iter().map(f64::from).collect();
                assert_eq!(values, oracle::dequantize_row(theirs, &bytes), "{format}, {kind:?}");
            }
        }
    }

    // Case B13: offsets beyond 32 bits.
    #[test]
    fn the_offset_of_a_far_row_is_exact() {
        assert_eq!(Format::Q8_0.matrix_bytes(255_999, 12_288), Ok(3_342_322_944));
    }

    // Case B48: sizes that wrap.
    #[test]
    fn a_size_beyond_the_address_space_is_an_error() {
        for (rows, columns) in [(1 << 32, 1 << 32), (usize::MAX, 32), (1 << 59, 1 << 32)] {
            let error = Format::Q8_0.matrix_bytes(rows, columns).unwrap_err();
            assert_eq!(error, QuantError::TooLarge { format: Format::Q8_0, rows, columns });
        }
    }

    #[test]
    fn formats_have_the_names_of_ggml() {
        assert_eq!([Format::Q5_0, Format::Q8_0].map(|format| format.to_string()), ["Q5_0", "Q8_0"]);
    }

    #[test]
    fn a_row_is_whole_blocks() {
        assert_eq!(Format::Q8_0.matrix_bytes(2, 64), Ok(136));
        assert_eq!(Format::Q5_0.matrix_bytes(128, 896), Ok(78_848));
        assert_eq!(Format::Q8_0.matrix_bytes(3, 0), Ok(0));
        assert_eq!(
            Format::Q8_0.matrix_bytes(1, 48),
            Err(QuantError::NotBlocks { what: "columns", len: 48 })
        );
    }
}
