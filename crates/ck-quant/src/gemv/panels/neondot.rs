//! Products of a packed matrix with NEON's dot product: 16 rows at a time, as four vectors of four lanes. Layout
//! and plain algorithm are those of `avx512vnni.rs`.
//!
//! 1. `SDOT` takes signed bytes on both sides. Q5_0's stored quants, 0 to 31, are the same number signed or not;
//!    eight times that would not be, hence quants are put together at bit 0, by a shift that inserts. Q8_0's
//!    sign bits are flipped back, and no offset is left to remove.
//!
//! This has run under emulation only; its speed is not known.

use super::{for_each_panel, for_each_panel_block, prefetch_after};
use crate::BLOCK_LEN;
use crate::activations::Activations;
use crate::gemv::Tile;
use crate::packed::{AnyPanels, PANEL_ROWS, Panels};
use crate::q5_0::PanelQ5_0;
use crate::q8_0::PanelQ8_0;
use bytemuck::{must_cast, must_cast_mut, must_cast_ref};
use ck_isa::load::aarch64::{f16_to_f32, load128, sdot, store128};
use core::arch::aarch64::*;
use std::ops::Range;

#[target_feature(enable = "neon,dotprod")]
pub(super) fn gemv(panels: AnyPanels<'_>, x: Activations<'_>, rows: Range<usize>, out: &mut [f32]) {
    match panels {
        AnyPanels::Q5_0(panels) => gemv_of(panels, x, rows, out, |w, x, c| q5_0_dots(w, x, c)),
        AnyPanels::Q8_0(panels) => gemv_of(panels, x, rows, out, |w, x, _| q8_0_dots(w, x)),
    }
}

/// Four vectors of 4 sums per panel; `dots` makes the 16 integer dot products of a block.
#[target_feature(enable = "neon,dotprod")]
fn gemv_of<P>(
    panels: Panels<'_, P>,
    x: Activations<'_>,
    rows: Range<usize>,
    out: &mut [f32],
    dots: impl Fn(&P, &[i8; BLOCK_LEN], i32) -> [int32x4_t; 4],
) {
    for_each_panel(rows, out, |panel, sums| {
        let (quants, scales) = panels.panel(panel, 0..x.len());
        let weights = quants.iter().zip(scales);
        let x = x.quants.iter().zip(x.scales).zip(x.corrections);
        let mut acc = [vdupq_n_f32(0.0); 4];
        for ((quants, scales), ((x, x_scale), correction)) in weights.zip(x) {
            prefetch_after(quants);
            let dots = dots(quants, x, *correction);
            let scales: &[[u8; 16]; 2] = must_cast_ref(scales);
            for (half, scales) in scales.iter().enumerate() {
                let scales = vreinterpretq_u16_u8(load128(scales));
                for (at, scales) in
                    [(2 * half, vget_low_u16(scales)), (2 * half + 1, vget_high_u16(scales))]
                {
                    let scales = vmulq_n_f32(f16_to_f32(scales), *x_scale);
                    acc[at] = vfmaq_f32(acc[at], scales, vcvtq_f32_s32(dots[at]));
                }
            }
        }
        store_quarters(must_cast_mut(sums), acc.map(|quarter| vreinterpretq_u8_f32(quarter)));
    });
}

#[target_feature(enable = "neon,dotprod")]
pub(super) fn block_dots(panels: AnyPanels<'_>, x: Activations<'_>, tile: Tile, out: &mut [i32]) {
    match panels {
        AnyPanels::Q5_0(panels) => {
            block_dots_of(panels, x, &tile, out, |w, x, c| q5_0_dots(w, x, c));
        }
        AnyPanels::Q8_0(panels) => block_dots_of(panels, x, &tile, out, |w, x, _| q8_0_dots(w, x)),
    }
}

#[target_feature(enable = "neon,dotprod")]
fn block_dots_of<P>(
    panels: Panels<'_, P>,
    x: Activations<'_>,
    tile: &Tile,
    out: &mut [i32],
    dots: impl Fn(&P, &[i8; BLOCK_LEN], i32) -> [int32x4_t; 4],
) {
    for_each_panel_block(tile, out, |panel, block| {
        let (quants, _) = panels.panel(panel, tile.blocks.clone());
        let mut lanes = [0; PANEL_ROWS];
        let dots = dots(&quants[block], &x.quants[block], x.corrections[block]);
        store_quarters(
            must_cast_mut(&mut lanes),
            dots.map(|quarter| vreinterpretq_u8_s32(quarter)),
        );
        lanes
    });
}

#[inline]
#[target_feature(enable = "neon,dotprod")]
fn store_quarters(bytes: &mut [[u8; 16]; 4], quarters: [uint8x16_t; 4]) {
    for (bytes, quarter) in bytes.iter_mut().zip(quarters) {
        store128(bytes, quarter);
    }
}

/// `correction` is -128 times the activation sum; the offset of 16 adds an eighth of that.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn q5_0_dots(weights: &PanelQ5_0, x: &[i8; BLOCK_LEN], correction: i32) -> [int32x4_t; 4] {
    let x: [i32; 8] = must_cast(*x);
    let pairs: &[[u8; 16]; 4] = must_cast_ref(&weights.pairs);
    let lines: &[[[u8; 16]; 4]; 4] = must_cast_ref(&weights.lines);
    let mut dots = [vdupq_n_s32(correction >> 3); 4];
    for (quarter, dots) in dots.iter_mut().enumerate() {
        let pairs = load128(&pairs[quarter]);
        let lower = [pairs, vshrq_n_u8::<2>(pairs), vshrq_n_u8::<4>(pairs), vshrq_n_u8::<6>(pairs)];
        for p in 0..4 {
            let line = load128(&lines[p][quarter]);
            let whole = vreinterpretq_s8_u8(vandq_u8(line, vdupq_n_u8(31)));
            *dots = sdot(*dots, whole, vreinterpretq_s8_s32(vdupq_n_s32(x[p])));
            // The upper three bits move above the lower two.
            let lower = vandq_u8(lower[p], vdupq_n_u8(3));
            let split = vreinterpretq_s8_u8(vsliq_n_u8::<2>(lower, vshrq_n_u8::<5>(line)));
            *dots = sdot(*dots, split, vreinterpretq_s8_s32(vdupq_n_s32(x[4 + p])));
        }
    }
    dots
}

/// The sign bits are flipped back: the instruction takes signed bytes on both sides.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn q8_0_dots(weights: &PanelQ8_0, x: &[i8; BLOCK_LEN]) -> [int32x4_t; 4] {
    let x: [i32; 8] = must_cast(*x);
    let lines: &[[[u8; 16]; 4]; 8] = must_cast_ref(&weights.lines);
    let mut dots = [vdupq_n_s32(0); 4];
    for (line, x) in lines.iter().zip(x) {
        let x = vreinterpretq_s8_s32(vdupq_n_s32(x));
        for (dots, line) in dots.iter_mut().zip(line) {
            let quants = veorq_u8(load128(line), vdupq_n_u8(0x80));
            *dots = sdot(*dots, vreinterpretq_s8_u8(quants), x);
        }
    }
    dots
}
