//! Products of a matrix in the order of a file with NEON's dot product. `wide.rs` has the algorithm; here are the
//! integer dot products of eight blocks. Both sides are signed, so that no offset is left to remove.
//!
//! This has run under emulation only; its speed is not known.

use super::wide::{self, Kernel, STEP, Step};
use crate::activations::Activations;
use crate::block::Block;
use crate::gemv::Tile;
use crate::matrix::Blocks;
use crate::{BLOCK_LEN, BlockQ5_0, BlockQ8_0, Matrix};
use bytemuck::{must_cast, must_cast_mut, must_cast_ref};
use ck_isa::load::aarch64::{f16_to_f32, load128, sdot, store128};
use core::arch::aarch64::*;
use std::ops::Range;

#[target_feature(enable = "neon,dotprod")]
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

#[target_feature(enable = "neon,dotprod")]
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
#[target_feature(enable = "neon,dotprod")]
fn scales<B: Block>(blocks: &[B; STEP]) -> [f32; STEP] {
    // The scale is the lower half of the four bytes; the other half is dropped.
    let heads = std::array::from_fn(|i| *blocks[i].head());
    let heads: [[u8; 16]; 2] = must_cast::<[[u8; 4]; STEP], _>(heads);
    let mut floats = [0.0; STEP];
    let quarters: &mut [[u8; 16]; 2] = must_cast_mut(&mut floats);
    for (heads, quarter) in heads.iter().zip(quarters) {
        let bits = vmovn_u32(vreinterpretq_u32_u8(load128(heads)));
        store128(quarter, vreinterpretq_u8_f32(f16_to_f32(bits)));
    }
    floats
}

/// The offset of 16 is taken off before the products: both sides are signed here.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn q5_0_dots(blocks: &[BlockQ5_0; STEP], (x, _): Step<'_>) -> [i32; STEP] {
    sums(std::array::from_fn(|i| {
        let nibbles = load128(blocks[i].nibbles());
        let [b0, b1, b2, b3] = blocks[i].high_bits().to_le_bytes();
        let quants = [
            q5_0_signed(vandq_u8(nibbles, vdupq_n_u8(15)), [b0, b1]),
            q5_0_signed(vshrq_n_u8::<4>(nibbles), [b2, b3]),
        ];
        products(quants, &x[i])
    }))
}

/// Sixteen quants from their low four bits and their fifth ones.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn q5_0_signed(low: uint8x16_t, high: [u8; 2]) -> int8x16_t {
    let bit = vcombine_u8(vcreate_u8(0x8040_2010_0804_0201), vcreate_u8(0x8040_2010_0804_0201));
    let set = vtstq_u8(vcombine_u8(vdup_n_u8(high[0]), vdup_n_u8(high[1])), bit);
    let stored = vorrq_u8(low, vandq_u8(set, vdupq_n_u8(16)));
    vsubq_s8(vreinterpretq_s8_u8(stored), vdupq_n_s8(16))
}

#[inline]
#[target_feature(enable = "neon,dotprod")]
fn q8_0_dots(blocks: &[BlockQ8_0; STEP], (x, _): Step<'_>) -> [i32; STEP] {
    sums(std::array::from_fn(|i| {
        let halves: &[[u8; 16]; 2] = must_cast_ref(blocks[i].quants());
        products(halves.map(|half| vreinterpretq_s8_u8(load128(&half))), &x[i])
    }))
}

/// Four partial sums of a block.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn products(quants: [int8x16_t; 2], x: &[i8; BLOCK_LEN]) -> int32x4_t {
    let x: &[[u8; 16]; 2] = must_cast_ref(x);
    let first = sdot(vdupq_n_s32(0), quants[0], vreinterpretq_s8_u8(load128(&x[0])));
    sdot(first, quants[1], vreinterpretq_s8_u8(load128(&x[1])))
}

/// The sum of each vector's lanes.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sums(lanes: [int32x4_t; STEP]) -> [i32; STEP] {
    let pairs = |i: usize| vpaddq_s32(lanes[i], lanes[i + 1]);
    let mut sums = [0; STEP];
    let quarters: &mut [[u8; 16]; 2] = must_cast_mut(&mut sums);
    store128(&mut quarters[0], vreinterpretq_u8_s32(vpaddq_s32(pairs(0), pairs(2))));
    store128(&mut quarters[1], vreinterpretq_u8_s32(vpaddq_s32(pairs(4), pairs(6))));
    sums
}
