//! Products of a matrix in the order of a file with AVX2. `wide.rs` has the algorithm; here are the integer dot
//! products of eight blocks.
//!
//! 1. Q5_0: `vpmaddubsw` cannot saturate, 2 * 31 * 128 = 7936, and neither can the first two steps of the tree
//!    that adds a block's sums, so these work on twice as many lanes.
//! 2. Q8_0: -128 on both sides rules out the usual trick of moving the signs of one side to the other (-128 has no
//!    opposite in a byte), so both are widened to i16.

use super::wide::{self, Kernel, STEP, Step};
use crate::activations::Activations;
use crate::block::Block;
use crate::gemv::Tile;
use crate::matrix::Blocks;
use crate::{BlockQ5_0, BlockQ8_0, Matrix};
use bytemuck::{must_cast_mut, must_cast_ref};
use ck_isa::load::x86::{load32, load128, load256, store256};
use core::arch::x86_64::*;
use std::ops::Range;

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn gemv(matrix: Matrix<'_>, x: Activations<'_>, rows: Range<usize>, out: &mut [f32]) {
    let fma = |a: f32, b: f32, c: f32| a.mul_add(b, c);
    match matrix.blocks() {
        Blocks::Q5_0(blocks) => {
            let kernel = Kernel {
                dots: |b: &_, x: Step<'_>| q5_0_dots(b, x),
                scales: |b: &_| scales(b),
                fma,
            };
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

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn block_dots(matrix: Matrix<'_>, x: Activations<'_>, tile: Tile, out: &mut [i32]) {
    let per_row = matrix.blocks_per_row();
    match matrix.blocks() {
        Blocks::Q5_0(blocks) => {
            wide::block_dots(|b: &_, x: Step<'_>| q5_0_dots(b, x), blocks, per_row, x, &tile, out);
        }
        Blocks::Q8_0(blocks) => {
            wide::block_dots(|b: &_, x: Step<'_>| q8_0_dots(b, x), blocks, per_row, x, &tile, out);
        }
    }
}

/// The scales of the blocks.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn scales<B: Block>(blocks: &[B; STEP]) -> [f32; STEP] {
    // The scale is the lowest of the words that are loaded, so that it is the one the first step keeps.
    let two = |i: usize| _mm_unpacklo_epi16(load32(blocks[i].head()), load32(blocks[i + 1].head()));
    let four = |i: usize| _mm_unpacklo_epi32(two(i), two(i + 2));
    let mut floats = [0.0; STEP];
    let wide = _mm256_cvtph_ps(_mm_unpacklo_epi64(four(0), four(4)));
    store256(must_cast_mut(&mut floats), _mm256_castps_si256(wide));
    floats
}

/// `corrections` are -128 times the activation sums; the offset of 16 adds an eighth of that. The products
/// are summed in i16 until four are in a lane: 4 * 2 * 31 * 128 = 31744 fits.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn q5_0_dots(blocks: &[BlockQ5_0; STEP], (x, corrections): Step<'_>) -> [i32; STEP] {
    let products = |i: usize| {
        let x = load256(must_cast_ref(&x[i]));
        _mm256_maddubs_epi16(q5_0_stored(&blocks[i]), x)
    };
    let pair = |i: usize| _mm256_hadd_epi16(products(i), products(i + 1));
    let four = |i: usize| {
        let lanes = _mm256_hadd_epi16(pair(i), pair(i + 2));
        _mm256_madd_epi16(lanes, _mm256_set1_epi16(1))
    };
    let corrections = _mm256_srai_epi32::<3>(load256(must_cast_ref(corrections)));
    stored(_mm256_add_epi32(join(four(0), four(4)), corrections))
}

/// The stored values 0 to 31 of a block, in order.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn q5_0_stored(block: &BlockQ5_0) -> __m256i {
    let nibbles = load128(block.nibbles());
    let both = _mm256_set_m128i(_mm_srli_epi16::<4>(nibbles), nibbles);
    let low = _mm256_and_si256(both, _mm256_set1_epi8(15));
    // Every byte gets the byte of high bits that its own bit is in, and then asks for that bit.
    let high = _mm256_set1_epi32(block.high_bits() as i32);
    let spread =
        _mm256_set_epi64x(0x0303_0303_0303_0303, 0x0202_0202_0202_0202, 0x0101_0101_0101_0101, 0);
    let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let asked = _mm256_and_si256(_mm256_shuffle_epi8(high, spread), bit);
    let set = _mm256_cmpeq_epi8(asked, bit);
    _mm256_or_si256(low, _mm256_and_si256(set, _mm256_set1_epi8(16)))
}

/// Both sides are widened to i16, where every product and sum of two is exact.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn q8_0_dots(blocks: &[BlockQ8_0; STEP], (x, _): Step<'_>) -> [i32; STEP] {
    let products = |i: usize| {
        let weights: &[[u8; 16]; 2] = must_cast_ref(blocks[i].quants());
        let x: &[[u8; 16]; 2] = must_cast_ref(&x[i]);
        let half = |i: usize| {
            let weights = _mm256_cvtepi8_epi16(load128(&weights[i]));
            _mm256_madd_epi16(weights, _mm256_cvtepi8_epi16(load128(&x[i])))
        };
        _mm256_add_epi32(half(0), half(1))
    };
    let pair = |i: usize| _mm256_hadd_epi32(products(i), products(i + 1));
    let four = |i: usize| _mm256_hadd_epi32(pair(i), pair(i + 2));
    stored(join(four(0), four(4)))
}

/// Adds the two halves of each vector; the sums of `a` come first.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn join(a: __m256i, b: __m256i) -> __m256i {
    let lower = _mm256_permute2x128_si256::<0x20>(a, b);
    let upper = _mm256_permute2x128_si256::<0x31>(a, b);
    _mm256_add_epi32(lower, upper)
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn stored(vector: __m256i) -> [i32; STEP] {
    let mut lanes = [0; STEP];
    store256(must_cast_mut(&mut lanes), vector);
    lanes
}
