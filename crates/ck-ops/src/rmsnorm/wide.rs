//! RMSNorm over vectors.

use super::PARTS;
use crate::halves::by_halves;
use ck_isa::Vectors;

/// The eight strided partial sums are eight lanes (or twice four, or four times two). A last row that is not full is
/// filled up with zeros, whose squares change no sum.
#[inline(always)]
pub(super) fn sum_of_squares<V: Vectors>(v: V, x: &[f32]) -> f64 {
    let mut sums = v.squares();
    let (rows, rest) = x.as_chunks::<PARTS>();
    for row in rows {
        sums = v.add_squares(sums, row);
    }
    if !rest.is_empty() {
        let mut row = [0.0; PARTS];
        row[..rest.len()].copy_from_slice(rest);
        sums = v.add_squares(sums, &row);
    }
    by_halves(&mut v.squares_to_array(sums), |a, b| a + b)
}

/// `(x * scale) * gamma`, a vector at a time.
#[inline(always)]
pub(super) fn apply<V: Vectors>(v: V, x: &[f32], gamma: &[f32], scale: f32, out: &mut [f32]) {
    let scale = v.splat(scale);
    let mut out_rows = out.chunks_exact_mut(V::LANES);
    let (x_rows, gamma_rows) = (x.chunks_exact(V::LANES), gamma.chunks_exact(V::LANES));
    let (x_rest, gamma_rest) = (x_rows.remainder(), gamma_rows.remainder());
    for ((x, gamma), out) in x_rows.zip(gamma_rows).zip(&mut out_rows) {
        v.store(v.mul(v.mul(v.load(x), scale), v.load(gamma)), out);
    }
    let rest = v.mul(v.mul(v.load_partial(x_rest), scale), v.load_partial(gamma_rest));
    v.store_partial(rest, out_rows.into_remainder());
}
