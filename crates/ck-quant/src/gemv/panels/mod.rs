//! Products of a packed matrix.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512vnni;
#[cfg(target_arch = "aarch64")]
mod neondot;
mod scalar;
mod wide;

use super::Tile;
use crate::Isa;
use crate::activations::Activations;
use crate::packed::{AnyPanels, PANEL_ROWS};
use ck_isa::load::prefetch_far;
use std::ops::Range;

/// Writes the products of `rows` to `out`. The caller has checked all lengths.
pub(crate) fn gemv(
    isa: Isa,
    panels: AnyPanels<'_>,
    x: Activations<'_>,
    rows: Range<usize>,
    out: &mut [f32],
) {
    match isa {
        Isa::Scalar => scalar::gemv(panels, x, rows, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::Avx2(_) => unsafe { avx2::gemv(panels, x, rows, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::Avx512Vnni(_) => unsafe { avx512vnni::gemv(panels, x, rows, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::NeonDot(_) => unsafe { neondot::gemv(panels, x, rows, out) },
    }
}

/// Writes the integer dot products of `tile` to `out`, row after row. `x` has the tile's blocks only. The
/// caller has checked all lengths.
pub(crate) fn block_dots(
    isa: Isa,
    panels: AnyPanels<'_>,
    x: Activations<'_>,
    tile: Tile,
    out: &mut [i32],
) {
    match isa {
        Isa::Scalar => scalar::block_dots(panels, x, tile, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::Avx2(_) => unsafe { avx2::block_dots(panels, x, tile, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::Avx512Vnni(_) => unsafe { avx512vnni::block_dots(panels, x, tile, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::NeonDot(_) => unsafe { neondot::block_dots(panels, x, tile, out) },
    }
}

/// Carries on the sums in `out` with the integer dot products of `tile`. `x_scales` are the activation
/// scales of the tile's blocks. The caller has checked all lengths.
pub(crate) fn add_block_dots(
    isa: Isa,
    panels: AnyPanels<'_>,
    x_scales: &[f32],
    tile: Tile,
    dots: &[i32],
    out: &mut [f32],
) {
    match isa {
        Isa::Scalar => scalar::add_block_dots(panels, x_scales, tile, dots, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::Avx2(_) => unsafe { avx2::add_block_dots(panels, x_scales, tile, dots, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::Avx512Vnni(_) => unsafe {
            avx512vnni::add_block_dots(panels, x_scales, tile, dots, out);
        },
        // A fused multiply-add is part of the base of AArch64, so plain Rust has it.
        #[cfg(target_arch = "aarch64")]
        Isa::NeonDot(_) => scalar::add_block_dots(panels, x_scales, tile, dots, out),
    }
}

/// The part of a range of rows that lies in one panel.
struct Piece {
    /// The panel's number.
    panel: usize,
    /// The piece's rows, counted within the panel.
    lanes: Range<usize>,
    /// The piece's rows, counted from the start of the range.
    rows: Range<usize>,
}

/// Cuts a range of rows where panels end. No piece is empty; of an empty range there is none.
#[inline(always)]
fn pieces(rows: Range<usize>) -> impl Iterator<Item = Piece> {
    let start = rows.start;
    let end = if rows.is_empty() { 0 } else { rows.end.div_ceil(PANEL_ROWS) };
    let panels = start / PANEL_ROWS..end;
    panels.map(move |panel| {
        let base = panel * PANEL_ROWS;
        let first = base.max(start);
        let end = base.saturating_add(PANEL_ROWS).min(rows.end);
        Piece { panel, lanes: first - base..end - base, rows: first - start..end - start }
    })
}

/// Calls `product` for every panel that has rows in `rows`, and passes on what it wrote for them. Whole
/// panels are written in place.
#[inline(always)]
fn for_each_panel(
    rows: Range<usize>,
    out: &mut [f32],
    mut product: impl FnMut(usize, &mut [f32; PANEL_ROWS]),
) {
    for piece in pieces(rows) {
        let part = &mut out[piece.rows];
        let mut all_lanes = [0.0; PANEL_ROWS];
        let lanes = match <&mut [f32; PANEL_ROWS]>::try_from(&mut *part) {
            Ok(whole) => whole,
            Err(_) => &mut all_lanes,
        };
        product(piece.panel, lanes);
        if part.len() < PANEL_ROWS {
            part.copy_from_slice(&all_lanes[piece.lanes]);
        }
    }
}

/// Calls `dots` for every panel that has rows in the tile and every block of the tile, counted from its
/// start, and puts the lanes where they belong.
#[inline(always)]
fn for_each_panel_block(
    tile: &Tile,
    out: &mut [i32],
    mut dots: impl FnMut(usize, usize) -> [i32; PANEL_ROWS],
) {
    let width = tile.blocks.len();
    for piece in pieces(tile.rows.clone()) {
        let part = &mut out[piece.rows.start * width..piece.rows.end * width];
        for block in 0..width {
            let lanes = dots(piece.panel, block);
            for (row, dot) in part.chunks_exact_mut(width).zip(&lanes[piece.lanes.clone()]) {
                row[block] = *dot;
            }
        }
    }
}

/// How far ahead of their use a panel's quants are asked for. Those of all panels lie one after the other, so
/// that this reaches into the next panel by itself. The scales are few, and asking for them gains nothing.
const AHEAD: usize = 3072;

/// Asks for the quants that come some blocks after these.
#[inline(always)]
fn prefetch_after<P>(quants: &P) {
    let ahead = std::ptr::from_ref(quants).cast::<u8>().wrapping_add(AHEAD);
    for line in 0..size_of::<P>() / 64 {
        prefetch_far(ahead.wrapping_add(64 * line));
    }
}
