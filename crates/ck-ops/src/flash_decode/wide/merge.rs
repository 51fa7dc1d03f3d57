//! Merging over vectors: lanes are head dimensions.

use crate::exp::wide::exp;
use crate::flash_decode::Partial;
use ck_isa::Vectors;

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
    // The same number in every lane, as it is needed below.
    let ours = exp(v, v.splat(total[max] - larger));
    let theirs = exp(v, v.splat(partial[max] - larger));
    let merged = v.fma(v.splat(total[sum]), ours, v.mul(v.splat(partial[sum]), theirs));
    v.store_partial(merged, &mut total[sum..][..1]);
    total[max] = larger;
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
