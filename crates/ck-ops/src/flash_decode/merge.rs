//! Partial results of one query head become its output.

#[cfg(target_arch = "aarch64")]
use super::neondot;
use super::{AttendScratch, Partial, partial_len, scalar};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512vnni};
use crate::OpError;
use crate::finite::{check_length, position_from};
use ck_isa::Isa;

/// Merges the partial results of one query head, given in the order of the chunks, into `out`.
///
/// The merge goes from the first chunk on: with the largest score so far `m` and the chunk's own `m'`, the
/// larger of the two becomes `m`, both sides are weighted by `exp(their m - m)` and added. At the end the
/// weighted sum of the values is divided by the sum of the weights.
///
/// # Errors
///
/// [`OpError::Length`], [`OpError::EmptyContext`] without any partial, [`OpError::NonFiniteResult`] (which calls the
/// head 0), also for partials whose weights do not sum up to a positive number. `out` is then as it was.
pub fn merge<'a>(
    isa: Isa,
    head_dim: usize,
    partials: impl IntoIterator<Item = &'a [f32]>,
    scratch: &mut AttendScratch,
    out: &mut [f32],
) -> Result<(), OpError> {
    check_length("merged head", head_dim, out.len())?;
    let len = partial_len(head_dim);
    let total = scratch.total(head_dim)?;
    let mut partials = partials.into_iter();
    let first = partials.next().ok_or(OpError::EmptyContext)?;
    check_length("partial", len, first.len())?;
    total.copy_from_slice(first);
    for partial in partials {
        check_length("partial", len, partial.len())?;
        fold(isa, head_dim, total, partial);
    }
    check(head_dim, 0, total)?;
    let sum = total[Partial::sum(head_dim)];
    if !(sum > 0.0 && sum.is_finite()) {
        return Err(OpError::NonFiniteResult { head: 0, dim: 0 });
    }
    finish(isa, total, out);
    Ok(())
}

/// Refuses a total whose quotients would not be finite. The sum of the weights is finite and at least one
/// in what `attend_chunk` makes; [`merge`] looks at it as well.
pub(super) fn check(head_dim: usize, head: usize, total: &[f32]) -> Result<(), OpError> {
    match position_from(f32::INFINITY, &total[..head_dim]) {
        None => Ok(()),
        Some(dim) => Err(OpError::NonFiniteResult { head, dim }),
    }
}

/// Adds the next chunk's `partial` to `total`.
pub(super) fn fold(isa: Isa, head_dim: usize, total: &mut [f32], partial: &[f32]) {
    match isa {
        Isa::Scalar => scalar::fold(head_dim, total, partial),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the features that the function names.
        Isa::Avx2(token) => unsafe { avx2::fold(token, head_dim, total, partial) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the features that the function names.
        Isa::Avx512Vnni(token) => unsafe { avx512vnni::fold(token, head_dim, total, partial) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the token proves the features that the function names.
        Isa::NeonDot(token) => unsafe { neondot::fold(token, head_dim, total, partial) },
    }
}

/// Divides the weighted sum of the values by the sum of the weights.
pub(super) fn finish(isa: Isa, total: &[f32], out: &mut [f32]) {
    match isa {
        Isa::Scalar => scalar::finish(total, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the features that the function names.
        Isa::Avx2(token) => unsafe { avx2::finish(token, total, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the features that the function names.
        Isa::Avx512Vnni(token) => unsafe { avx512vnni::finish(token, total, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the token proves the features that the function names.
        Isa::NeonDot(token) => unsafe { neondot::finish(token, total, out) },
    }
}
