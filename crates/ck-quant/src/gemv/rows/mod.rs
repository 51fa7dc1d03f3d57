//! Products of a matrix in the order of a file.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512vnni;
#[cfg(target_arch = "aarch64")]
mod neondot;
pub(crate) mod scalar;
mod wide;

use super::Tile;
use crate::activations::Activations;
use crate::{Isa, Matrix};
use std::ops::Range;

/// Writes the products of `rows` to `out`. The caller has checked all lengths.
pub(crate) fn gemv(
    isa: Isa,
    matrix: Matrix<'_>,
    x: Activations<'_>,
    rows: Range<usize>,
    out: &mut [f32],
) {
    match isa {
        Isa::Scalar => scalar::gemv(matrix, x, rows, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::Avx2(_) => unsafe { avx2::gemv(matrix, x, rows, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::Avx512Vnni(_) => unsafe { avx512vnni::gemv(matrix, x, rows, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::NeonDot(_) => unsafe { neondot::gemv(matrix, x, rows, out) },
    }
}

/// Writes the integer dot products of `tile` to `out`, row after row. `x` has the tile's blocks only. The
/// caller has checked all lengths.
pub(crate) fn block_dots(
    isa: Isa,
    matrix: Matrix<'_>,
    x: Activations<'_>,
    tile: Tile,
    out: &mut [i32],
) {
    match isa {
        Isa::Scalar => scalar::block_dots(matrix, x, tile, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::Avx2(_) => unsafe { avx2::block_dots(matrix, x, tile, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::Avx512Vnni(_) => unsafe { avx512vnni::block_dots(matrix, x, tile, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::NeonDot(_) => unsafe { neondot::block_dots(matrix, x, tile, out) },
    }
}

/// Carries on the sums in `out` with the integer dot products of `tile`. `x_scales` are the activation
/// scales of the tile's blocks. The caller has checked all lengths.
///
/// One text for all levels: the time goes into fetching a scale from every cache line or two of the matrix.
pub(crate) fn add_block_dots(
    matrix: Matrix<'_>,
    x_scales: &[f32],
    tile: &Tile,
    dots: &[i32],
    out: &mut [f32],
) {
    scalar::add_block_dots(matrix, x_scales, tile, dots, out);
}
