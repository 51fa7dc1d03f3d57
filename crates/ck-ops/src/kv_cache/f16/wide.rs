//! Rounding to `f16` over vectors.

use ck_isa::{MAX_LANES, Vectors};
use half::f16;

/// A row that is not full is rounded beside its place.
#[inline(always)]
pub(super) fn round<V: Vectors>(v: V, row: &[f32], elements: &mut [f16]) {
    for (row, elements) in row.chunks(V::LANES).zip(elements.chunks_mut(V::LANES)) {
        let elements: &mut [u16] = bytemuck::must_cast_slice_mut(elements);
        if row.len() == V::LANES {
            v.store_f16(v.load(row), elements);
        } else {
            let mut whole = [0; MAX_LANES];
            v.store_f16(v.load_partial(row), &mut whole);
            elements.copy_from_slice(&whole[..row.len()]);
        }
    }
}
