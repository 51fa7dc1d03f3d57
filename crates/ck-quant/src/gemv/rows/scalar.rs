//! Dot products in plain Rust: the definition that every other level must agree with.

use crate::activations::Activations;
use crate::block::Block;
use crate::gemv::Tile;
use crate::matrix::Blocks;
use crate::{BLOCK_LEN, Matrix};
use ck_isa::fma;
use std::ops::Range;

/// The exact integer dot product of a block with a block of quantized activations.
///
/// The largest magnitude is 32 * 128 * 128, far inside `i32`.
#[inline(always)]
pub(crate) fn block_dot<B: Block>(block: &B, activations: &[i8; BLOCK_LEN]) -> i32 {
    let products = block.quants().into_iter().zip(*activations);
    products.map(|(w, a)| i32::from(w) * i32::from(a)).sum()
}

/// The dot product of a row with as many blocks of activations, block after block.
pub(crate) fn row_dot<B: Block>(row: &[B], x: Activations<'_>) -> f32 {
    row.iter().zip(x.quants).zip(x.scales).fold(0.0, |acc, ((block, quants), scale)| {
        fma(block.scale().to_f32() * scale, block_dot(block, quants) as f32, acc)
    })
}

pub(super) fn gemv(matrix: Matrix<'_>, x: Activations<'_>, rows: Range<usize>, out: &mut [f32]) {
    match matrix.blocks() {
        Blocks::Q5_0(blocks) => gemv_of(blocks, x, rows, out),
        Blocks::Q8_0(blocks) => gemv_of(blocks, x, rows, out),
    }
}

fn gemv_of<B: Block>(blocks: &[B], x: Activations<'_>, rows: Range<usize>, out: &mut [f32]) {
    for (row, y) in rows.zip(out) {
        *y = row_dot(&blocks[row * x.len()..(row + 1) * x.len()], x);
    }
}

pub(super) fn block_dots(matrix: Matrix<'_>, x: Activations<'_>, tile: Tile, out: &mut [i32]) {
    match matrix.blocks() {
        Blocks::Q5_0(blocks) => block_dots_of(blocks, matrix.blocks_per_row(), x, tile, out),
        Blocks::Q8_0(blocks) => block_dots_of(blocks, matrix.blocks_per_row(), x, tile, out),
    }
}

fn block_dots_of<B: Block>(
    blocks: &[B],
    per_row: usize,
    x: Activations<'_>,
    tile: Tile,
    out: &mut [i32],
) {
    let width = tile.blocks.len();
    for (index, row) in tile.rows.enumerate() {
        let row = &blocks[row * per_row..][tile.blocks.clone()];
        let out = &mut out[index * width..(index + 1) * width];
        for ((block, quants), dot) in row.iter().zip(x.quants).zip(out) {
            *dot = block_dot(block, quants);
        }
    }
}

pub(super) fn add_block_dots(
    matrix: Matrix<'_>,
    x_scales: &[f32],
    tile: &Tile,
    dots: &[i32],
    out: &mut [f32],
) {
    let width = tile.blocks.len();
    for (index, (row, sum)) in tile.rows.clone().zip(out).enumerate() {
        let first = row * matrix.blocks_per_row() + tile.blocks.start;
        let terms = x_scales.iter().zip(&dots[index * width..(index + 1) * width]);
        *sum = terms.enumerate().fold(*sum, |sum, (block, (x_scale, dot))| {
            fma(matrix.blocks().scale(first + block).to_f32() * x_scale, *dot as f32, sum)
        });
    }
}
