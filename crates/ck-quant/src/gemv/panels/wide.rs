//! What every level does in the same way.

use super::pieces;
use crate::gemv::Tile;
use crate::packed::{PANEL_ROWS, Panels};
use half::slice::HalfFloatSliceExt;

/// Carries on the sums in `out` with the integer dot products of `tile`: lanes are rows.
#[inline(always)]
pub(super) fn add_block_dots<P>(
    panels: Panels<'_, P>,
    x_scales: &[f32],
    tile: Tile,
    dots: &[i32],
    out: &mut [f32],
    fma: impl Fn(f32, f32, f32) -> f32,
) {
    let width = tile.blocks.len();
    for piece in pieces(tile.rows) {
        let (_, scales) = panels.panel(piece.panel, tile.blocks.clone());
        let sums = &mut out[piece.rows.clone()];
        for (block, (scales, x_scale)) in scales.iter().zip(x_scales).enumerate() {
            let mut lanes = [0.0; PANEL_ROWS];
            scales.convert_to_f32_slice(&mut lanes);
            let dots = &dots[piece.rows.start * width + block..];
            let dots = dots.iter().step_by(width);
            for ((sum, scale), dot) in sums.iter_mut().zip(&lanes[piece.lanes.clone()]).zip(dots) {
                *sum = fma(scale * x_scale, *dot as f32, *sum);
            }
        }
    }
}
