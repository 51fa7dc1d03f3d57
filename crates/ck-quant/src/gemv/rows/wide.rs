//! Products of a matrix in the order of a file: what every level does in the same way.
//!
//! The plain algorithm:
//!
//! ```text
//! for each row:
//!     sum = 0
//!     for each block of the row:
//!         sum = fma(scale * x_scale, dot(quants, x) as f32, sum)
//! ```
//!
//! 1. The integer dot products may be summed in any order, the sum over blocks only in this one. So a row is first
//!    walked from end to end, eight blocks at a time, noting each block's two factors; then the sums of
//!    eight rows run side by side, one fused multiply-add after the other in each.
//! 2. A row is walked as its bytes lie in memory, and the next row follows directly: one stream for the
//!    hardware to see, and the address to prefetch is a fixed distance ahead.
//! 3. Where the blocks are no multiple of eight, the row's last eight are done once more. Results that are
//!    written twice are the same twice.
//!
//! What did not help (`cargo run --bin kernels`, Xeon of family 6, model 167): filling up the last blocks with zeros
//! instead of point 3 cost a third of the time at 28 blocks a row; taking the scales as 16-bit loads, which insert
//! into a register that an earlier step must have finished with, a third more at any width.

use crate::BLOCK_LEN;
use crate::activations::Activations;
use crate::block::Block;
use crate::gemv::Tile;
use ck_isa::load::prefetch;
use std::ops::Range;

/// Blocks that a level's kernel takes at once.
pub(super) const STEP: usize = 8;

/// Rows whose sums run side by side: enough to hide the latency of a fused multiply-add.
const ROWS: usize = 8;

/// Blocks of a row whose terms are noted before they are summed: 4096 columns.
const CHUNK: usize = 128;

/// How far ahead of its use a row's memory is asked for. The next row follows directly.
const AHEAD: usize = 2048;

/// What a level brings.
pub(super) struct Kernel<D, W, F> {
    /// The integer dot products of blocks with activations, given the activations' corrections.
    pub(super) dots: D,
    /// The scales of blocks, as f32.
    pub(super) scales: W,
    /// `a * b + c`, rounded once.
    pub(super) fma: F,
}

/// Eight blocks of activations: quants and corrections.
pub(super) type Step<'a> = (&'a [[i8; BLOCK_LEN]; STEP], &'a [i32; STEP]);

/// The terms of some blocks of some rows.
struct Terms {
    scales: [[f32; CHUNK]; ROWS],
    dots: [[f32; CHUNK]; ROWS],
}

/// Writes the products of `rows` to `out`.
#[inline(always)]
pub(super) fn gemv<B, D, W, F>(
    kernel: &Kernel<D, W, F>,
    blocks: &[B],
    x: Activations<'_>,
    rows: Range<usize>,
    out: &mut [f32],
) where
    B: Block,
    D: Fn(&[B; STEP], Step<'_>) -> [i32; STEP],
    W: Fn(&[B; STEP]) -> [f32; STEP],
    F: Fn(f32, f32, f32) -> f32,
{
    let mut terms = Terms { scales: [[0.0; CHUNK]; ROWS], dots: [[0.0; CHUNK]; ROWS] };
    for (group, out) in out.chunks_mut(ROWS).enumerate() {
        let first_row = rows.start + group * ROWS;
        let mut sums = [0.0; ROWS];
        for start in (0..x.len()).step_by(CHUNK) {
            let chunk = start..(start + CHUNK).min(x.len());
            for row in 0..out.len() {
                let row_blocks = &blocks[(first_row + row) * x.len()..][chunk.clone()];
                let (scales, dots) = (&mut terms.scales[row], &mut terms.dots[row]);
                for_each_step(row_blocks, x.blocks(chunk.clone()), |at, blocks, x, x_scales| {
                    let weight_scales = (kernel.scales)(blocks);
                    let products =
                        std::array::from_fn::<f32, STEP, _>(|i| weight_scales[i] * x_scales[i]);
                    scales[at..at + STEP].copy_from_slice(&products);
                    let block_dots = (kernel.dots)(blocks, x).map(|dot| dot as f32);
                    dots[at..at + STEP].copy_from_slice(&block_dots);
                });
            }
            for block in 0..chunk.len() {
                for (row, sum) in sums.iter_mut().enumerate() {
                    *sum = (kernel.fma)(terms.scales[row][block], terms.dots[row][block], *sum);
                }
            }
        }
        out.copy_from_slice(&sums[..out.len()]);
    }
}

/// Writes the integer dot products of `tile` to `out`; rows have `per_row` blocks.
#[inline(always)]
pub(super) fn block_dots<B: Block>(
    dots: impl Fn(&[B; STEP], Step<'_>) -> [i32; STEP],
    blocks: &[B],
    per_row: usize,
    x: Activations<'_>,
    tile: &Tile,
    out: &mut [i32],
) {
    let width = tile.blocks.len();
    for (index, row) in tile.rows.clone().enumerate() {
        let row_blocks = &blocks[row * per_row..][tile.blocks.clone()];
        let out = &mut out[index * width..(index + 1) * width];
        for_each_step(row_blocks, x, |at, blocks, x, _| {
            let count = STEP.min(width - at);
            out[at..at + count].copy_from_slice(&dots(blocks, x)[..count]);
        });
    }
}

/// Calls `f` with every eight blocks of a row, the activations for them and their scales.
///
/// Where the blocks are no multiple of eight, the last call goes over the row's last eight once more: that
/// writes some results twice, and copies nothing. A row of less than eight is filled up with zeros.
#[inline(always)]
fn for_each_step<B: Block>(
    row: &[B],
    x: Activations<'_>,
    mut f: impl FnMut(usize, &[B; STEP], Step<'_>, &[f32; STEP]),
) {
    let (padded_row, padded_quants, padded_corrections, padded_scales);
    let (row, x) = if (1..STEP).contains(&row.len()) {
        padded_row = filled_up(row);
        padded_quants = filled_up(x.quants);
        padded_corrections = filled_up(x.corrections);
        padded_scales = filled_up(x.scales);
        let x = Activations {
            scales: &padded_scales,
            quants: &padded_quants,
            corrections: &padded_corrections,
        };
        (&padded_row[..], x)
    } else {
        (row, x)
    };
    for start in (0..row.len()).step_by(STEP) {
        let start = start.min(row.len() - STEP);
        let parts = (
            row[start..].first_chunk(),
            x.quants[start..].first_chunk(),
            x.corrections[start..].first_chunk(),
            x.scales[start..].first_chunk(),
        );
        let (Some(blocks), Some(quants), Some(corrections), Some(scales)) = parts else { return };
        let ahead = std::ptr::from_ref(blocks).cast::<u8>().wrapping_add(AHEAD);
        for line in 0..(STEP * size_of::<B>()).div_ceil(64) {
            prefetch(ahead.wrapping_add(64 * line));
        }
        f(start, blocks, (quants, corrections), scales);
    }
}

/// `rest` and zeros.
fn filled_up<T: bytemuck::Pod>(rest: &[T]) -> [T; STEP] {
    let mut all = [T::zeroed(); STEP];
    all[..rest.len()].copy_from_slice(rest);
    all
}
