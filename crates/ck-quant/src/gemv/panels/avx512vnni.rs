//! Products of a packed matrix with AVX-512 VNNI: 16 rows at a time, a vector lane for each. The layout is that
//! of `PanelQ5_0` and `PanelQ8_0`; the caller has checked all lengths.
//!
//! The plain algorithm:
//!
//! ```text
//! for each panel:
//!     sums = 0
//!     for each block:
//!         dots[row] = sum over the block's columns of quant[row][column] * x[column], exact in i32
//!         sums[row] = fma(scale[row] * x_scale, dots[row] as f32, sums[row])
//! ```
//!
//! 1. `vpdpbusd` adds four products of unsigned and signed bytes to an i32 lane. The weights are the unsigned
//!    side, so quants are stored with their offset and four columns of a row lie side by side; the activations
//!    are four bytes that go to all lanes. Nothing saturates: a block's sum is at most
//!    32 * 255 * 128, far inside i32.
//! 2. The offset adds `offset * sum(x)` to every row, the same number for all of them. The accumulator starts
//!    from minus that, which is stored with the activations, instead of from 0.
//! 3. In Q5_0, half of the quants come out of one AND. The others come out as eight times the quant (at most
//!    248, still a byte) with one shift, one select and one AND; their sum is kept apart and shifted right by
//!    three, once per block. It is a multiple of eight, since its start, -128 times a sum, is one too.
//! 4. The sums of a panel never leave their register, and no lane is ever added to another one.
//!
//! What did not help (`cargo run --bin kernels`, Xeon of family 6, model 167): nibbles with a plane of fifth bits,
//! as 64-bit masks for masked additions, take 36 instructions on the two vector ports per block where
//! this takes 31. Prefetching into the first level of the cache: 0.63 to 0.85 of the read loop's bandwidth
//! from memory, against 0.87 to 0.94 into the second level (4096 x 4096, pages of 2 MiB).

use super::{for_each_panel, for_each_panel_block, prefetch_after, wide};
use crate::BLOCK_LEN;
use crate::activations::Activations;
use crate::gemv::Tile;
use crate::packed::{AnyPanels, PANEL_ROWS, Panels};
use crate::q5_0::PanelQ5_0;
use crate::q8_0::PanelQ8_0;
use bytemuck::{must_cast, must_cast_mut, must_cast_ref};
use ck_isa::load::x86::{load256, load512, store512};
use core::arch::x86_64::*;
use std::ops::Range;

#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) fn gemv(panels: AnyPanels<'_>, x: Activations<'_>, rows: Range<usize>, out: &mut [f32]) {
    match panels {
        AnyPanels::Q5_0(panels) => gemv_of(panels, x, rows, out, |w, x, c| q5_0_dots(w, x, c)),
        AnyPanels::Q8_0(panels) => gemv_of(panels, x, rows, out, |w, x, c| q8_0_dots(w, x, c)),
    }
}

/// One vector of 16 sums per panel; `dots` makes the 16 integer dot products of a block.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
fn gemv_of<P>(
    panels: Panels<'_, P>,
    x: Activations<'_>,
    rows: Range<usize>,
    out: &mut [f32],
    dots: impl Fn(&P, &[i8; BLOCK_LEN], i32) -> __m512i,
) {
    for_each_panel(rows, out, |panel, sums| {
        let (quants, scales) = panels.panel(panel, 0..x.len());
        let weights = quants.iter().zip(scales);
        let x = x.quants.iter().zip(x.scales).zip(x.corrections);
        let mut acc = _mm512_setzero_ps();
        for ((quants, scales), ((x, x_scale), correction)) in weights.zip(x) {
            prefetch_after(quants);
            let dots = _mm512_cvtepi32_ps(dots(quants, x, *correction));
            let scales = _mm512_cvtph_ps(load256(must_cast_ref(scales)));
            acc = _mm512_fmadd_ps(_mm512_mul_ps(scales, _mm512_set1_ps(*x_scale)), dots, acc);
        }
        store512(must_cast_mut(sums), _mm512_castps_si512(acc));
    });
}

#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
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

#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
fn block_dots_of<P>(
    panels: Panels<'_, P>,
    x: Activations<'_>,
    tile: &Tile,
    out: &mut [i32],
    dots: impl Fn(&P, &[i8; BLOCK_LEN], i32) -> __m512i,
) {
    for_each_panel_block(tile, out, |panel, block| {
        let (quants, _) = panels.panel(panel, tile.blocks.clone());
        let mut lanes = [0; PANEL_ROWS];
        let dots = dots(&quants[block], &x.quants[block], x.corrections[block]);
        store512(must_cast_mut(&mut lanes), dots);
        lanes
    });
}

#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
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

/// Groups 0 to 3 are one AND each. Groups 4 to 7 are put together as eight times the quant, in the upper
/// five bits of a byte, and summed by themselves; that sum is divided by eight once, exactly.
/// `correction` is -128 times the activation sum, which is eight times what the offset of 16 adds.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
fn q5_0_dots(weights: &PanelQ5_0, x: &[i8; BLOCK_LEN], correction: i32) -> __m512i {
    const SELECT: i32 = 0xca;
    let x: [i32; 8] = must_cast(*x);
    let pairs = load512(&weights.pairs);
    let pairs_at_bit_3 = [
        _mm512_slli_epi16::<3>(pairs),
        _mm512_slli_epi16::<1>(pairs),
        _mm512_srli_epi16::<1>(pairs),
        _mm512_srli_epi16::<3>(pairs),
    ];
    let upper_three = _mm512_set1_epi8(0xe0_u8 as i8);
    let mut whole = _mm512_setzero_si512();
    let mut eightfold = _mm512_set1_epi32(correction);
    for p in 0..4 {
        let line = load512(&weights.lines[p]);
        let quants = _mm512_and_si512(line, _mm512_set1_epi8(0x1f));
        whole = _mm512_dpbusd_epi32(whole, quants, _mm512_set1_epi32(x[p]));
        let quants = _mm512_ternarylogic_epi32::<SELECT>(upper_three, line, pairs_at_bit_3[p]);
        let quants = _mm512_and_si512(quants, _mm512_set1_epi8(0xf8_u8 as i8));
        eightfold = _mm512_dpbusd_epi32(eightfold, quants, _mm512_set1_epi32(x[4 + p]));
    }
    _mm512_add_epi32(whole, _mm512_srai_epi32::<3>(eightfold))
}

/// `correction` is -128 times the activation sum, which is what the offset of 128 adds.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
fn q8_0_dots(weights: &PanelQ8_0, x: &[i8; BLOCK_LEN], correction: i32) -> __m512i {
    let x: [i32; 8] = must_cast(*x);
    let mut even = _mm512_set1_epi32(correction);
    let mut odd = _mm512_setzero_si512();
    for pair in 0..4 {
        let line = load512(&weights.lines[2 * pair]);
        even = _mm512_dpbusd_epi32(even, line, _mm512_set1_epi32(x[2 * pair]));
        let line = load512(&weights.lines[2 * pair + 1]);
        odd = _mm512_dpbusd_epi32(odd, line, _mm512_set1_epi32(x[2 * pair + 1]));
    }
    _mm512_add_epi32(even, odd)
}
