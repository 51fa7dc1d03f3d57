//! Products of a packed matrix in plain Rust.

use super::{for_each_panel, for_each_panel_block, wide};
use crate::BLOCK_LEN;
use crate::activations::Activations;
use crate::gemv::Tile;
use crate::packed::{AnyPanels, PANEL_ROWS, PanelBlock, Panels};
use ck_isa::fma;
use std::ops::Range;

pub(super) fn gemv(panels: AnyPanels<'_>, x: Activations<'_>, rows: Range<usize>, out: &mut [f32]) {
    match panels {
        AnyPanels::Q5_0(panels) => gemv_of(panels, x, rows, out),
        AnyPanels::Q8_0(panels) => gemv_of(panels, x, rows, out),
    }
}

fn gemv_of<P: PanelBlock>(
    panels: Panels<'_, P>,
    x: Activations<'_>,
    rows: Range<usize>,
    out: &mut [f32],
) {
    for_each_panel(rows, out, |panel, sums| {
        *sums = [0.0; PANEL_ROWS];
        let (quants, scales) = panels.panel(panel, 0..x.len());
        for (block, (quants, scales)) in quants.iter().zip(scales).enumerate() {
            let dots = panel_dots(quants, &x.quants[block]);
            for ((sum, scale), dot) in sums.iter_mut().zip(scales).zip(dots) {
                *sum = fma(scale.to_f32() * x.scales[block], dot as f32, *sum);
            }
        }
    });
}

pub(super) fn block_dots(panels: AnyPanels<'_>, x: Activations<'_>, tile: Tile, out: &mut [i32]) {
    match panels {
        AnyPanels::Q5_0(panels) => block_dots_of(panels, x, &tile, out),
        AnyPanels::Q8_0(panels) => block_dots_of(panels, x, &tile, out),
    }
}

fn block_dots_of<P: PanelBlock>(
    panels: Panels<'_, P>,
    x: Activations<'_>,
    tile: &Tile,
    out: &mut [i32],
) {
    for_each_panel_block(tile, out, |panel, block| {
        let (quants, _) = panels.panel(panel, tile.blocks.clone());
        panel_dots(&quants[block], &x.quants[block])
    });
}

pub(super) fn add_block_dots(
    panels: AnyPanels<'_>,
    x_scales: &[f32],
    tile: Tile,
    dots: &[i32],
    out: &mut [f32],
) {
    match panels {
        AnyPanels::Q5_0(panels) => wide::add_block_dots(panels, x_scales, tile, dots, out, fma),
        AnyPanels::Q8_0(panels) => wide::add_block_dots(panels, x_scales, tile, dots, out, fma),
    }
}

/// The exact integer dot products of one block in all rows of a panel.
fn panel_dots<P: PanelBlock>(quants: &P, x: &[i8; BLOCK_LEN]) -> [i32; PANEL_ROWS] {
    let mut dots = [0; PANEL_ROWS];
    let (x, _) = x.as_chunks::<4>();
    for (group, x) in x.iter().enumerate() {
        let unsigned = quants.group(group);
        for (dot, columns) in dots.iter_mut().zip(unsigned.as_chunks::<4>().0) {
            for (unsigned, x) in columns.iter().zip(x) {
                *dot += (i32::from(*unsigned) - P::OFFSET) * i32::from(*x);
            }
        }
    }
    dots
}
