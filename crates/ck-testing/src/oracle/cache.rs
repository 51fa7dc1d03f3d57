//! What storing a row of keys or values does to it.

use super::{Format, Rejected, dequantize_row, narrow, quantize_row, reject_non_finite};
use half::f16;

/// What a stored key or value row is rounded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheRounding {
    /// Nothing: rows stay as they were computed.
    None,
    /// `f16`, ties to even.
    F16,
    /// Q8_0 blocks along the head dimension.
    Q8_0,
}

impl CacheRounding {
    /// The row as the cache returns it. It is an `f32` row when it is stored, whatever it is rounded to.
    ///
    /// # Errors
    ///
    /// [`Rejected::NonFinite`]; [`Rejected::CacheOverflow`] beyond `f16`;
    /// [`Rejected::ScaleOverflow`] and [`Rejected::PartialBlock`] for Q8_0.
    pub fn round(self, row: &[f64]) -> Result<Vec<f64>, Rejected> {
        reject_non_finite(row.iter().copied())?;
        match self {
            Self::None => Ok(row.to_vec()),
            Self::F16 => {
                let stored: Vec<f16> = row.iter().map(|&x| f16::from_f32(x as f32)).collect();
                match stored.iter().position(|x| x.is_infinite()) {
                    Some(index) => Err(Rejected::CacheOverflow { index }),
                    None => Ok(stored.iter().map(|x| x.to_f64()).collect()),
                }
            }
            Self::Q8_0 => {
                let bytes = quantize_row(Format::Q8_0, &narrow(row))?;
                Ok(dequantize_row(Format::Q8_0, &bytes))
            }
        }
    }
}
