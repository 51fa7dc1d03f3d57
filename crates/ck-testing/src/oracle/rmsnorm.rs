//! RMSNorm: `y = x / sqrt(mean(x^2) + eps) * gamma`.

use super::{Rejected, reject_non_finite};

/// A normalized row and what its error bound needs.
#[derive(Clone, Debug, PartialEq)]
pub struct RmsNorm {
    /// The normalized row.
    pub values: Vec<f64>,
    /// The mean of the squares of the input, without epsilon.
    pub mean_square: f64,
}

/// Normalizes a row. The divisor of the mean is the row's real length.
///
/// # Errors
///
/// [`Rejected::NonFinite`] for an element of `input`; [`Rejected::NormOverflow`] and
/// [`Rejected::NormOfZero`] by the contract's `f32` mean.
///
/// # Panics
///
/// If `input` is empty or `gamma` has another length.
pub fn rmsnorm(input: &[f64], gamma: &[f64], eps: f32) -> Result<RmsNorm, Rejected> {
    assert!(!input.is_empty(), "a row to normalize has at least one element");
    assert_eq!(gamma.len(), input.len(), "one gamma per element");
    reject_non_finite(input.iter().copied())?;
    let squares: f64 = input.iter().map(|x| x * x).sum();
    let mean_square = squares / input.len() as f64;
    let stored_mean = mean_square as f32;
    if stored_mean.is_infinite() {
        return Err(Rejected::NormOverflow);
    }
    if stored_mean == 0.0 && eps == 0.0 {
        return Err(Rejected::NormOfZero);
    }
    let root = (mean_square + f64::from(eps)).sqrt();
    let values = input.iter().zip(gamma).map(|(x, gamma)| x / root * gamma).collect();
    Ok(RmsNorm { values, mean_square })
}
