//! The rotation as plain code: the definition.

use ck_isa::fma;

/// One pair: `x0 cos - x1 sin` and `x0 sin + x1 cos`.
#[inline(always)]
fn rotate_pair(cos: f32, sin: f32, x0: f32, x1: f32) -> (f32, f32) {
    (fma(-x1, sin, x0 * cos), fma(x0, sin, x1 * cos))
}

/// Element `i` of the first half with element `i` of the second.
pub(super) fn rotate_split_half(cos: &[f32], sin: &[f32], head: &mut [f32]) {
    let (first, second) = head.split_at_mut(cos.len());
    for (((x0, x1), &cos), &sin) in first.iter_mut().zip(second).zip(cos).zip(sin) {
        (*x0, *x1) = rotate_pair(cos, sin, *x0, *x1);
    }
}

/// Neighbours.
pub(super) fn rotate_interleaved(cos: &[f32], sin: &[f32], head: &mut [f32]) {
    for ((pair, &cos), &sin) in head.chunks_exact_mut(2).zip(cos).zip(sin) {
        (pair[0], pair[1]) = rotate_pair(cos, sin, pair[0], pair[1]);
    }
}
