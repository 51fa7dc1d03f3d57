//! Merging over vectors: lanes are head dimensions. The few numbers of a whole head are scalar.

use crate::exp;
use crate::flash_decode::Partial;
use ck_isa::{Vectors, fma};

/// Adds the next chunk's `partial` to `total`.
#[inline(always)]
pub(in crate::flash_decode) fn fold<V: Vectors>(
    v: V,
    head_dim: usize,
    total: &mut [f32],
    partial: &[f32],
) {
    let (max, sum) = (Partial::max(head_dim), Partial::sum(head_dim));
    let larger = if total[max] > partial[max] { total[max] } else { partial[max] };
    let (ours, theirs) = (exp(total[max] - larger), exp(partial[max] - larger));
    total[max] = larger;
    total[sum] = fma(total[sum], ours, partial[sum] * theirs);
    let (ours, theirs) = (v.splat(ours), v.splat(theirs));
    let rows = total[..head_dim].chunks_mut(V::LANES).zip(partial[..head_dim].chunks(V::LANES));
    for (total, partial) in rows {
        if total.len() == V::LANES {
            let sum = v.fma(v.load(total), ours, v.mul(v.load(partial), theirs));
            v.store(sum, total);
        } else {
            let partial = v.mul(v.load_partial(partial), theirs);
            v.store_partial(v.fma(v.load_partial(total), ours, partial), total);
        }
    }
}

/// Divides the weighted sum of the values by the sum of the weights.
#[inline(always)]
pub(in crate::flash_decode) fn finish<V: Vectors>(v: V, total: &[f32], out: &mut [f32]) {
    let sum = v.splat(total[Partial::sum(out.len())]);
    for (out, total) in out.chunks_mut(V::LANES).zip(total.chunks(V::LANES)) {
        // A total has padding to whole vectors; whatever is in it is not stored.
        v.store_partial(v.div(v.load(total), sum), out);
    }
}
