//! RMSNorm: `y[i] = x[i] / sqrt(mean(x * x) + eps) * gamma[i]`.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512vnni;
#[cfg(target_arch = "aarch64")]
mod neondot;
mod scalar;
#[cfg(test)]
mod tests;
mod wide;

use crate::OpError;
use crate::finite::{check_finite, check_length};
use ck_isa::Isa;

/// Strided partial sums of the squares.
const PARTS: usize = 8;

/// Writes `x / sqrt(mean(x * x) + eps) * gamma` to `out`.
///
/// All three slices have the same length, which is the width that the mean divides by. Per-head norms
/// (the Q and K norms of some models) are one call per head.
///
/// The order of operations is that of `docs/numerics.md`: the squares are exact in `f64` and summed in eight
/// strided partial sums, so that no input below 1.8e19 in magnitude overflows. A finite `gamma` can still
/// take a result beyond the range of `f32`; it is then infinite, and not hidden.
///
/// # Errors
///
/// [`OpError::Length`], [`OpError::Zero`] for empty slices, [`OpError::Epsilon`], [`OpError::NonFinite`] in `x` or
/// `gamma`, [`OpError::MeanSquareOverflow`], [`OpError::ZeroMeanSquare`]. `out` is then as it was.
///
/// ```
/// # use ck_isa::Isa;
/// let mut out = [0.0; 4];
/// ck_ops::rms_norm(Isa::detect(), &[3.0, -3.0, 3.0, -3.0], &[1.0, 1.0, 2.0, 2.0], 0.0, &mut out)?;
/// assert_eq!(out, [1.0, -1.0, 2.0, -2.0]);
/// # Ok::<(), ck_ops::OpError>(())
/// ```
pub fn rms_norm(
    isa: Isa,
    x: &[f32],
    gamma: &[f32],
    eps: f32,
    out: &mut [f32],
) -> Result<(), OpError> {
    if x.is_empty() {
        return Err(OpError::Zero { what: "rms norm width" });
    }
    check_length("rms norm gamma", x.len(), gamma.len())?;
    check_length("rms norm output", x.len(), out.len())?;
    if !(eps.is_finite() && eps >= 0.0) {
        return Err(OpError::Epsilon { eps });
    }
    check_finite("rms norm gamma", gamma)?;
    let sum = sum_of_squares(isa, x);
    if !sum.is_finite() {
        // Squares of finite f32 values cannot overflow f64, so there is a value to name.
        check_finite("rms norm input", x)?;
    }
    let scale = scale(sum, x.len(), eps)?;
    apply(isa, x, gamma, scale, out);
    Ok(())
}

/// `1 / sqrt(sum / n + eps)`.
fn scale(sum: f64, n: usize, eps: f32) -> Result<f32, OpError> {
    let mean_square = sum / n as f64;
    let mean = mean_square as f32;
    if !mean.is_finite() {
        return Err(OpError::MeanSquareOverflow { mean_square });
    }
    let radicand = mean + eps;
    if radicand == 0.0 {
        return Err(OpError::ZeroMeanSquare);
    }
    if !radicand.is_finite() {
        return Err(OpError::MeanSquareOverflow { mean_square: mean_square + f64::from(eps) });
    }
    Ok(1.0 / radicand.sqrt())
}

fn sum_of_squares(isa: Isa, x: &[f32]) -> f64 {
    match isa {
        Isa::Scalar => scalar::sum_of_squares(x),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the features that the function names.
        Isa::Avx2(token) => unsafe { avx2::sum_of_squares(token, x) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the features that the function names.
        Isa::Avx512Vnni(token) => unsafe { avx512vnni::sum_of_squares(token, x) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the token proves the features that the function names.
        Isa::NeonDot(token) => unsafe { neondot::sum_of_squares(token, x) },
    }
}

fn apply(isa: Isa, x: &[f32], gamma: &[f32], scale: f32, out: &mut [f32]) {
    match isa {
        Isa::Scalar => scalar::apply(x, gamma, scale, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the features that the function names.
        Isa::Avx2(token) => unsafe { avx2::apply(token, x, gamma, scale, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the features that the function names.
        Isa::Avx512Vnni(token) => unsafe { avx512vnni::apply(token, x, gamma, scale, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the token proves the features that the function names.
        Isa::NeonDot(token) => unsafe { neondot::apply(token, x, gamma, scale, out) },
    }
}
