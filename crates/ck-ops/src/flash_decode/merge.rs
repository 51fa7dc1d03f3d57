//! Partial results of one query head become its output.

use super::{AttendScratch, Partial, partial_len};
use crate::OpError;
use crate::exp::exp;
use crate::finite::check_length;
use ck_isa::{Isa, fma};

/// Merges the partial results of one query head, given in the order of the chunks, into `out`.
///
/// The merge goes from the first chunk on: with the largest score so far `m` and the chunk's own `m'`, the
/// larger of the two becomes `m`, both sides are weighted by `exp(their m - m)` and added. At the end the
/// weighted sum of the values is divided by the sum of the weights.
///
/// # Errors
///
/// [`OpError::Length`], [`OpError::EmptyContext`] without any partial, [`OpError::NonFiniteResult`] (which calls the
/// head row 0). `out` is then as it was.
pub fn merge<'a>(
    isa: Isa,
    head_dim: usize,
    partials: impl IntoIterator<Item = &'a [f32]>,
    scratch: &mut AttendScratch,
    out: &mut [f32],
) -> Result<(), OpError> {
    let len = partial_len(head_dim);
    check_length("merged head", head_dim, out.len())?;
    if scratch.partials.len() < len {
        return Err(OpError::Scratch);
    }
    let total = &mut scratch.partials[..len];
    let mut partials = partials.into_iter();
    let first = partials.next().ok_or(OpError::EmptyContext)?;
    check_length("partial", len, first.len())?;
    total.copy_from_slice(first);
    for partial in partials {
        check_length("partial", len, partial.len())?;
        fold(isa, head_dim, total, partial);
    }
    check(isa, head_dim, 0, total)?;
    finish(isa, total, out);
    Ok(())
}

/// Adds the next chunk's `partial` to `total`.
pub(super) fn fold(_isa: Isa, head_dim: usize, total: &mut [f32], partial: &[f32]) {
    let (max, sum) = (Partial::max(head_dim), Partial::sum(head_dim));
    let larger = if total[max] > partial[max] { total[max] } else { partial[max] };
    let (ours, theirs) = (exp(total[max] - larger), exp(partial[max] - larger));
    total[max] = larger;
    total[sum] = fma(total[sum], ours, partial[sum] * theirs);
    for (total, &partial) in total[..head_dim].iter_mut().zip(partial) {
        *total = fma(*total, ours, partial * theirs);
    }
}

/// Refuses a total whose quotients would not be finite. The sum of the weights is finite and at least one.
pub(super) fn check(_isa: Isa, head_dim: usize, row: usize, total: &[f32]) -> Result<(), OpError> {
    match total[..head_dim].iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(dim) => Err(OpError::NonFiniteResult { row, dim }),
    }
}

/// Divides the weighted sum of the values by the sum of the weights.
pub(super) fn finish(_isa: Isa, total: &[f32], out: &mut [f32]) {
    let sum = total[Partial::sum(out.len())];
    for (out, &value) in out.iter_mut().zip(total) {
        *out = value / sum;
    }
}
