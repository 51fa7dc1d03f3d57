//! The rotation over vectors: lanes are pairs.

use ck_isa::Vectors;

/// `x0 cos - x1 sin` and `x0 sin + x1 cos` of as many pairs as there are lanes.
#[inline(always)]
fn rotate_pairs<V: Vectors>(
    v: V,
    (cos, sin): (V::F32, V::F32),
    (x0, x1): (V::F32, V::F32),
) -> (V::F32, V::F32) {
    (v.neg_fma(x1, sin, v.mul(x0, cos)), v.fma(x0, sin, v.mul(x1, cos)))
}

/// Element `i` of the first half with element `i` of the second.
#[inline(always)]
pub(super) fn rotate_split_half<V: Vectors>(v: V, cos: &[f32], sin: &[f32], head: &mut [f32]) {
    let (first, second) = head.split_at_mut(cos.len());
    let rows = first.chunks_mut(V::LANES).zip(second.chunks_mut(V::LANES));
    let angles = cos.chunks(V::LANES).zip(sin.chunks(V::LANES));
    for ((first, second), (cos, sin)) in rows.zip(angles) {
        if first.len() == V::LANES {
            let x = (v.load(first), v.load(second));
            let (x0, x1) = rotate_pairs(v, (v.load(cos), v.load(sin)), x);
            v.store(x0, first);
            v.store(x1, second);
        } else {
            let x = (v.load_partial(first), v.load_partial(second));
            let (x0, x1) = rotate_pairs(v, (v.load_partial(cos), v.load_partial(sin)), x);
            v.store_partial(x0, first);
            v.store_partial(x1, second);
        }
    }
}

/// Neighbours: two vectors of them are taken apart into first and second elements, and put together again.
#[inline(always)]
pub(super) fn rotate_interleaved<V: Vectors>(v: V, cos: &[f32], sin: &[f32], head: &mut [f32]) {
    let angles = cos.chunks(V::LANES).zip(sin.chunks(V::LANES));
    for (pairs, (cos, sin)) in head.chunks_mut(2 * V::LANES).zip(angles) {
        // A last row that is not full may end in the first of the two vectors.
        let (low, high) = pairs.split_at_mut(pairs.len().min(V::LANES));
        if cos.len() == V::LANES {
            let x = v.unzip(v.load(low), v.load(high));
            let (x0, x1) = rotate_pairs(v, (v.load(cos), v.load(sin)), x);
            let (x_low, x_high) = v.zip(x0, x1);
            v.store(x_low, low);
            v.store(x_high, high);
        } else {
            let x = v.unzip(v.load_partial(low), v.load_partial(high));
            let (x0, x1) = rotate_pairs(v, (v.load_partial(cos), v.load_partial(sin)), x);
            let (x_low, x_high) = v.zip(x0, x1);
            v.store_partial(x_low, low);
            v.store_partial(x_high, high);
        }
    }
}
