//! Products of a matrix in the order of a file with AVX-512 VNNI. `wide.rs` has the algorithm; here are the
//! integer dot products of eight blocks.
//!
//! 1. Two blocks fill a vector: one `vpdpbusd` leaves eight partial sums of each.
//! 2. The partial sums of all eight blocks are added in a tree that works on full vectors until two are left.
//! 3. Weights are the unsigned side, with their offset of 16 or (sign bit flipped) 128, which is removed by the
//!    activations' correction in the end.

use super::wide::{self, Kernel, STEP, Step};
use crate::activations::Activations;
use crate::block::Block;
use crate::gemv::Tile;
use crate::matrix::Blocks;
use crate::{BlockQ5_0, BlockQ8_0, Matrix};
use bytemuck::{must_cast_mut, must_cast_ref};
use ck_isa::load::x86::{load32, load128, load256, load512, store256};
use core::arch::x86_64::*;
use std::ops::Range;

#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) fn gemv(matrix: Matrix<'_>, x: Activations<'_>, rows: Range<usize>, out: &mut [f32]) {
    let fma = |a: f32, b: f32, c: f32| a.mul_add(b, c);
    match matrix.blocks() {
        Blocks::Q5_0(blocks) => {
            let fifth = fifth_bit();
            let dots = |b: &_, x: Step<'_>| q5_0_dots(b, x, fifth);
            let kernel = Kernel { dots, scales: |b: &_| scales(b), fma };
            wide::gemv(&kernel, blocks, x, rows, out);
        }
        Blocks::Q8_0(blocks) => {
            let kernel = Kernel {
                dots: |b: &_, x: Step<'_>| q8_0_dots(b, x),
                scales: |b: &_| scales(b),
                fma,
            };
            wide::gemv(&kernel, blocks, x, rows, out);
        }
    }
}

#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) fn block_dots(matrix: Matrix<'_>, x: Activations<'_>, tile: Tile, out: &mut [i32]) {
    let per_row = matrix.blocks_per_row();
    match matrix.blocks() {
        Blocks::Q5_0(blocks) => {
            let fifth = fifth_bit();
            wide::block_dots(
                |b: &_, x: Step<'_>| q5_0_dots(b, x, fifth),
                blocks,
                per_row,
                x,
                &tile,
                out,
            );
        }
        Blocks::Q8_0(blocks) => {
            wide::block_dots(|b: &_, x: Step<'_>| q8_0_dots(b, x), blocks, per_row, x, &tile, out);
        }
    }
}

/// The fifth bit of a quant in every byte, as a number that the compiler does not know.
///
/// If it knew that four bits and the fifth never overlap, it would make an OR of the addition; and there is no
/// OR that is masked by bytes, so that one masked instruction would become two.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
fn fifth_bit() -> __m512i {
    _mm512_set1_epi8(std::hint::black_box(16))
}

/// The scales of the blocks.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
fn scales<B: Block>(blocks: &[B; STEP]) -> [f32; STEP] {
    // The scale is the lowest of the words that are loaded, so that it is the one the first step keeps.
    let two = |i: usize| _mm_unpacklo_epi16(load32(blocks[i].head()), load32(blocks[i + 1].head()));
    let four = |i: usize| _mm_unpacklo_epi32(two(i), two(i + 2));
    let mut floats = [0.0; STEP];
    let wide = _mm256_cvtph_ps(_mm_unpacklo_epi64(four(0), four(4)));
    store256(must_cast_mut(&mut floats), _mm256_castps_si256(wide));
    floats
}

/// Two blocks fill a vector. `corrections` are -128 times the activation sums; the offset of 16 adds an
/// eighth of that.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
fn q5_0_dots(
    blocks: &[BlockQ5_0; STEP],
    (x, corrections): Step<'_>,
    fifth_bit: __m512i,
) -> [i32; STEP] {
    const SECOND_BLOCK: u16 = 0xff00;
    let shifts = _mm512_set_epi64(4, 4, 0, 0, 4, 4, 0, 0);
    let mut lanes = [_mm512_setzero_si512(); STEP / 2];
    let x: &[[u8; 64]; STEP / 2] = must_cast_ref(x);
    for pair in 0..STEP / 2 {
        let [first, second] = [&blocks[2 * pair], &blocks[2 * pair + 1]];
        let nibbles = _mm512_broadcast_i32x4(load128(first.nibbles()));
        let nibbles = _mm512_mask_broadcast_i32x4(nibbles, SECOND_BLOCK, load128(second.nibbles()));
        let low = _mm512_and_si512(_mm512_srlv_epi64(nibbles, shifts), _mm512_set1_epi8(15));
        let high_bits = u64::from(first.high_bits()) | u64::from(second.high_bits()) << 32;
        let quants = _mm512_mask_add_epi8(low, high_bits, low, fifth_bit);
        lanes[pair] = _mm512_dpbusd_epi32(lanes[pair], quants, load512(&x[pair]));
    }
    let corrections = _mm256_srai_epi32::<3>(load256(must_cast_ref(corrections)));
    stored(_mm256_add_epi32(sums(lanes), corrections))
}

/// Two blocks fill a vector. Quants are made unsigned by flipping their sign bit; `corrections` are -128
/// times the activation sums, which is what that adds.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
fn q8_0_dots(blocks: &[BlockQ8_0; STEP], (x, corrections): Step<'_>) -> [i32; STEP] {
    let mut lanes = [_mm512_setzero_si512(); STEP / 2];
    let x: &[[u8; 64]; STEP / 2] = must_cast_ref(x);
    for pair in 0..STEP / 2 {
        let [first, second] = [&blocks[2 * pair], &blocks[2 * pair + 1]];
        let quants = _mm512_castsi256_si512(load256(must_cast_ref(first.quants())));
        let quants = _mm512_inserti64x4::<1>(quants, load256(must_cast_ref(second.quants())));
        let quants = _mm512_xor_si512(quants, _mm512_set1_epi8(-128));
        lanes[pair] = _mm512_dpbusd_epi32(lanes[pair], quants, load512(&x[pair]));
    }
    stored(_mm256_add_epi32(sums(lanes), load256(must_cast_ref(corrections))))
}

/// The sums of the lower and of the upper eight lanes of each vector, in order.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
fn sums(lanes: [__m512i; STEP / 2]) -> __m256i {
    // Four lanes of each pair of vectors become two, then four vectors become one: each 128-bit quarter then
    // has one partial sum of each vector.
    let halve = |a, b| _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let (a, b) = (halve(lanes[0], lanes[1]), halve(lanes[2], lanes[3]));
    let quarters = _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    // The first two quarters belong to the even blocks, the last two to the odd ones.
    let in_order = _mm512_shuffle_i32x4::<0b11_01_10_00>(quarters, quarters);
    let even_odd = _mm256_add_epi32(
        _mm512_castsi512_si256(in_order),
        _mm512_extracti64x4_epi64::<1>(in_order),
    );
    _mm256_permutevar8x32_epi32(even_odd, _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
fn stored(vector: __m256i) -> [i32; STEP] {
    let mut lanes = [0; STEP];
    store256(must_cast_mut(&mut lanes), vector);
    lanes
}
