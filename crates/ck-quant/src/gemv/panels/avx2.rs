//! Products of a packed matrix with AVX2: 16 rows at a time, as two vectors of eight lanes. Layout and plain
//! algorithm are those of `avx512vnni.rs`.
//!
//! 1. `vpmaddubsw` multiplies unsigned by signed bytes and adds two products in i16, where it saturates. For
//!    Q5_0 it cannot: 2 * 31 * 128 = 7936. Four such sums still fit, so the widening to i32 is done once
//!    for four groups of columns. Eight times the quant would not fit, hence quants are put together at bit 0.
//! 2. Q8_0 would saturate (2 * 255 * 128 is twice what i16 holds). Even and odd bytes are widened to i16 by an AND
//!    and a shift, and `vpmaddwd` adds their products in i32. They stay unsigned, 0 to 255, so that
//!    the offset goes the way it goes everywhere.

use super::{for_each_panel, for_each_panel_block, prefetch_after, wide};
use crate::BLOCK_LEN;
use crate::activations::Activations;
use crate::gemv::Tile;
use crate::packed::{AnyPanels, PANEL_ROWS, Panels};
use crate::q5_0::PanelQ5_0;
use crate::q8_0::PanelQ8_0;
use bytemuck::{must_cast, must_cast_mut, must_cast_ref};
use ck_isa::load::x86::{load128, load256, store256};
use core::arch::x86_64::*;
use std::ops::Range;

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn gemv(panels: AnyPanels<'_>, x: Activations<'_>, rows: Range<usize>, out: &mut [f32]) {
    match panels {
        AnyPanels::Q5_0(panels) => gemv_of(panels, x, rows, out, |w, x, c| q5_0_dots(w, x, c)),
        AnyPanels::Q8_0(panels) => gemv_of(panels, x, rows, out, |w, x, c| q8_0_dots(w, x, c)),
    }
}

/// Two vectors of 8 sums per panel; `dots` makes the 16 integer dot products of a block.
#[target_feature(enable = "avx2,fma,f16c")]
fn gemv_of<P>(
    panels: Panels<'_, P>,
    x: Activations<'_>,
    rows: Range<usize>,
    out: &mut [f32],
    dots: impl Fn(&P, &[i8; BLOCK_LEN], i32) -> [__m256i; 2],
) {
    for_each_panel(rows, out, |panel, sums| {
        let (quants, scales) = panels.panel(panel, 0..x.len());
        let weights = quants.iter().zip(scales);
        let x = x.quants.iter().zip(x.scales).zip(x.corrections);
        let mut acc = [_mm256_setzero_ps(); 2];
        for ((quants, scales), ((x, x_scale), correction)) in weights.zip(x) {
            prefetch_after(quants);
            let dots = dots(quants, x, *correction);
            let scales: &[[u8; 16]; 2] = must_cast_ref(scales);
            for half in 0..2 {
                let scales = _mm256_cvtph_ps(load128(&scales[half]));
                let scales = _mm256_mul_ps(scales, _mm256_set1_ps(*x_scale));
                acc[half] = _mm256_fmadd_ps(scales, _mm256_cvtepi32_ps(dots[half]), acc[half]);
            }
        }
        store_halves(must_cast_mut(sums), acc.map(|half| _mm256_castps_si256(half)));
    });
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn block_dots(panels: AnyPanels<'_>, x: Activations<'_>, tile: Tile, out: &mut [i32]) {
    match panels {
        AnyPanels::Q5_0(panels) => {
            block_dots_of(panels, x, &tile, out, |w, x, c| q5_0_dots(w, x, c));
        }
        AnyPanels::Q8_0(panels) => {
            block_dots_of(panels, x, &tile, out, |w, x, c| q8_0_dots(w, x, c));
        }
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
fn block_dots_of<P>(
    panels: Panels<'_, P>,
    x: Activations<'_>,
    tile: &Tile,
    out: &mut [i32],
    dots: impl Fn(&P, &[i8; BLOCK_LEN], i32) -> [__m256i; 2],
) {
    for_each_panel_block(tile, out, |panel, block| {
        let (quants, _) = panels.panel(panel, tile.blocks.clone());
        let mut lanes = [0; PANEL_ROWS];
        let dots = dots(&quants[block], &x.quants[block], x.corrections[block]);
        store_halves(must_cast_mut(&mut lanes), dots);
        lanes
    });
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn add_block_dots(
    panels: AnyPanels<'_>,
    x_scales: &[f32],
    tile: Tile,
    dots: &[i32],
    out: &mut [f32],
) {
    let fma = |a: f32, b: f32, c: f32| a.mul_add(b, c);
    match panels {
        AnyPanels::Q5_0(panels) => wide::add_block_dots(panels, x_scales, tile, dots, out, fma),
        AnyPanels::Q8_0(panels) => wide::add_block_dots(panels, x_scales, tile, dots, out, fma),
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn store_halves(bytes: &mut [[u8; 32]; 2], halves: [__m256i; 2]) {
    store256(&mut bytes[0], halves[0]);
    store256(&mut bytes[1], halves[1]);
}

/// Four groups are summed in i16 before they are widened: 4 * 2 * 31 * 128 = 31744 fits.
/// `correction` is -128 times the activation sum; the offset of 16 adds an eighth of that.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn q5_0_dots(weights: &PanelQ5_0, x: &[i8; BLOCK_LEN], correction: i32) -> [__m256i; 2] {
    let x: [i32; 8] = must_cast(*x);
    let ones = _mm256_set1_epi16(1);
    let pairs: &[[u8; 32]; 2] = must_cast_ref(&weights.pairs);
    let lines: &[[[u8; 32]; 2]; 4] = must_cast_ref(&weights.lines);
    let mut dots = [_mm256_set1_epi32(correction >> 3); 2];
    for half in 0..2 {
        let pairs = load256(&pairs[half]);
        let pairs_at_bit_0 = [
            pairs,
            _mm256_srli_epi16::<2>(pairs),
            _mm256_srli_epi16::<4>(pairs),
            _mm256_srli_epi16::<6>(pairs),
        ];
        let mut whole = _mm256_setzero_si256();
        let mut split = _mm256_setzero_si256();
        for p in 0..4 {
            let line = load256(&lines[p][half]);
            let quants = _mm256_and_si256(line, _mm256_set1_epi8(0x1f));
            let products = _mm256_maddubs_epi16(quants, _mm256_set1_epi32(x[p]));
            whole = _mm256_add_epi16(whole, products);
            let upper = _mm256_and_si256(_mm256_srli_epi16::<3>(line), _mm256_set1_epi8(0x1c));
            let lower = _mm256_and_si256(pairs_at_bit_0[p], _mm256_set1_epi8(0x03));
            let quants = _mm256_or_si256(upper, lower);
            let products = _mm256_maddubs_epi16(quants, _mm256_set1_epi32(x[4 + p]));
            split = _mm256_add_epi16(split, products);
        }
        dots[half] = _mm256_add_epi32(dots[half], _mm256_madd_epi16(whole, ones));
        dots[half] = _mm256_add_epi32(dots[half], _mm256_madd_epi16(split, ones));
    }
    dots
}

/// Bytes are widened to i16, even and odd columns apart, since 255 * 128 * 2 does not fit i16.
/// `correction` is -128 times the activation sum, which is what the offset of 128 adds.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn q8_0_dots(weights: &PanelQ8_0, x: &[i8; BLOCK_LEN], correction: i32) -> [__m256i; 2] {
    let x: [i32; 8] = must_cast(*x);
    let lines: &[[[u8; 32]; 2]; 8] = must_cast_ref(&weights.lines);
    let mut dots = [_mm256_set1_epi32(correction); 2];
    for group in 0..8 {
        let x = _mm256_set1_epi32(x[group]);
        let x_even = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(x));
        let x_odd = _mm256_srai_epi16::<8>(x);
        for half in 0..2 {
            let line = load256(&lines[group][half]);
            let even = _mm256_and_si256(line, _mm256_set1_epi16(0xff));
            let odd = _mm256_srli_epi16::<8>(line);
            dots[half] = _mm256_add_epi32(dots[half], _mm256_madd_epi16(even, x_even));
            dots[half] = _mm256_add_epi32(dots[half], _mm256_madd_epi16(odd, x_odd));
        }
    }
    dots
}
