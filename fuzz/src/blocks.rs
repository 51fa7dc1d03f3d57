//! Bytes as blocks of weights and activations: every level and both forms give the bits of the scalar rows.

use crate::bits;
use ck_isa::Isa;
use ck_quant::{
    BLOCK_LEN, BlockQ8_0, Format, Matrix, PackedMatrix, QuantError, QuantizedVector, Weights, q5_0,
    q8_0,
};
use ck_testing::oracle;
use half::f16;
use std::ops::Range;

/// Takes format, rows, blocks of a row, a range and an alignment from the first bytes, and weights and
/// activations from the rest, which zeros continue.
///
/// # Panics
///
/// If a level or form differs from the scalar rows, these or the dequantized values from the oracle's
/// reading of the bytes, or an error from what is wrong.
pub fn check(bytes: &[u8]) {
    let [head @ ..] = bytes;
    let Some((&[format, rows, per_row, start, end, offset], rest)) = head.split_first_chunk()
    else {
        return;
    };
    let format = if format & 1 == 0 { Format::Q5_0 } else { Format::Q8_0 };
    let (rows, per_row) = (usize::from(rows % 40), usize::from(per_row % 9));
    let mut rest = rest.iter().copied().chain(std::iter::repeat(0));

    let len = format.matrix_bytes(rows, per_row * BLOCK_LEN).unwrap();
    let offset = usize::from(offset % 64);
    // The weights end where the allocation does, so that a read behind them is seen.
    let mut memory: Vec<u8> = vec![0; offset];
    memory.extend(rest.by_ref().take(len));
    let activations: Vec<u8> = rest.by_ref().take(per_row * size_of::<BlockQ8_0>()).collect();

    refuse_wrong_lengths(format, rows, per_row, &memory[offset..]);
    refuse_bad_scales(format, rows, per_row, &mut memory[offset..]);
    let x = activations_of(&activations);
    let case = Case {
        matrix: Matrix::new(format, rows, per_row * BLOCK_LEN, &memory[offset..]).unwrap(),
        format,
        x: &x,
        per_row,
    };
    dequantize(&case);
    let (a, b) = (usize::from(start) % (rows + 1), usize::from(end) % (rows + 1));
    case.check_rows(0..rows);
    case.check_rows(a.min(b)..a.max(b));
}

struct Case<'a> {
    matrix: Matrix<'a>,
    format: Format,
    x: &'a QuantizedVector,
    per_row: usize,
}

impl Case<'_> {
    /// All ways to the products of some rows.
    fn check_rows(&self, rows: Range<usize>) {
        let packed = PackedMatrix::pack(self.matrix).unwrap();
        let expected = self.scalar(rows.clone());
        for isa in Isa::available() {
            for weights in [Weights::from(self.matrix), Weights::from(&packed)] {
                let mut out = vec![f32::NAN; rows.len()];
                weights.gemv(isa, self.x, rows.clone(), &mut out).unwrap();
                assert_eq!(bits(&out), bits(&expected), "{isa}, {weights:?}, rows {rows:?}");

                let middle = self.per_row / 2;
                let mut sums = vec![0.0; rows.len()];
                for blocks in [0..middle, middle..self.per_row] {
                    let mut dots = vec![i32::MIN; rows.len() * blocks.len()];
                    let (rows, x) = (rows.clone(), self.x);
                    weights.block_dots(isa, x, rows.clone(), blocks.clone(), &mut dots).unwrap();
                    weights.add_block_dots(isa, x, rows, blocks, &dots, &mut sums).unwrap();
                }
                assert_eq!(bits(&sums), bits(&expected), "{isa}, {weights:?}, dots of {rows:?}");
            }
        }
    }

    /// The scalar products, their integer parts checked against the oracle's.
    fn scalar(&self, rows: Range<usize>) -> Vec<f32> {
        let weights = Weights::from(self.matrix);
        let mut dots = vec![0; rows.len() * self.per_row];
        let blocks = 0..self.per_row;
        weights.block_dots(Isa::Scalar, self.x, rows.clone(), blocks, &mut dots).unwrap();
        let quants = self.x.quants().iter().map(|q| oracle::Block { scale: f16::ONE, quants: *q });
        let x: Vec<oracle::Block> = quants.collect();
        let row_bytes = self.per_row * self.format.block_bytes();
        for (i, row) in rows.clone().enumerate() {
            let bytes = &self.matrix.bytes()[row * row_bytes..(row + 1) * row_bytes];
            let blocks = oracle::decode_row(oracle_format(self.format), bytes);
            for (j, (block, x)) in blocks.iter().zip(&x).enumerate() {
                assert_eq!(i64::from(dots[i * self.per_row + j]), oracle::block_dot(block, x));
            }
        }
        let mut out = vec![f32::NAN; rows.len()];
        weights.gemv(Isa::Scalar, self.x, rows, &mut out).unwrap();
        assert!(out.iter().all(|x| x.is_finite()));
        out
    }
}

fn oracle_format(format: Format) -> oracle::Format {
    match format {
        Format::Q5_0 => oracle::Format::Q5_0,
        _ => oracle::Format::Q8_0,
    }
}

/// Fewer and more bytes than the shape's are refused.
fn refuse_wrong_lengths(format: Format, rows: usize, per_row: usize, bytes: &[u8]) {
    let columns = per_row * BLOCK_LEN;
    let longer = [bytes, &[0]].concat();
    for wrong in [&longer[..], &bytes[..bytes.len().saturating_sub(1)]] {
        if wrong.len() != bytes.len() {
            let error = Matrix::new(format, rows, columns, wrong).unwrap_err();
            assert!(matches!(error, QuantError::Bytes { .. }), "{error}");
        }
    }
}

/// A scale that is not finite is refused and found; then it is made finite.
fn refuse_bad_scales(format: Format, rows: usize, per_row: usize, bytes: &mut [u8]) {
    for index in 0..rows * per_row {
        let at = index * format.block_bytes();
        let scale = f16::from_le_bytes([bytes[at], bytes[at + 1]]);
        if !scale.is_finite() {
            let error = Matrix::new(format, rows, per_row * BLOCK_LEN, bytes).unwrap_err();
            let QuantError::BlockScale { row, block, .. } = error else { panic!("{error}") };
            assert_eq!((row, block), (index / per_row, index % per_row));
            bytes[at + 1] &= 0xbf;
        }
    }
}

/// The activations of some bytes, scales that are not finite made so.
fn activations_of(bytes: &[u8]) -> QuantizedVector {
    let blocks: Vec<BlockQ8_0> = bytes
        .chunks_exact(size_of::<BlockQ8_0>())
        .map(|block| {
            let quants = std::array::from_fn(|j| block[2 + j] as i8);
            BlockQ8_0::new(f16::from_le_bytes([block[0], block[1] & 0xbf]), quants)
        })
        .collect();
    let mut x = QuantizedVector::zeros(blocks.len() * BLOCK_LEN).unwrap();
    x.set_blocks(&blocks).unwrap();
    x
}

/// The values of the blocks are those that the oracle reads.
fn dequantize(case: &Case<'_>) {
    let bytes = case.matrix.bytes();
    let expected = oracle::dequantize_row(oracle_format(case.format), bytes);
    let mut values = vec![f32::NAN; expected.len()];
    let block_bytes = case.format.block_bytes();
    match case.format {
        Format::Q5_0 => {
            let blocks: Vec<_> = bytes.chunks_exact(block_bytes).map(block_q5_0).collect();
            q5_0::dequantize_row(&blocks, &mut values).unwrap();
        }
        _ => {
            let block = |bytes: &[u8]| {
                let quants = std::array::from_fn(|j| bytes[2 + j] as i8);
                BlockQ8_0::new(f16::from_le_bytes([bytes[0], bytes[1]]), quants)
            };
            let blocks: Vec<_> = bytes.chunks_exact(block_bytes).map(block).collect();
            q8_0::dequantize_row(&blocks, &mut values).unwrap();
        }
    }
    // Products of an f16 and a small integer are exact in both types.
    assert_eq!(bits(&values), bits(&oracle::narrow(&expected)));
}

fn block_q5_0(bytes: &[u8]) -> ck_quant::BlockQ5_0 {
    let block = oracle::Block::decode(oracle::Format::Q5_0, bytes);
    ck_quant::BlockQ5_0::new(block.scale, block.quants.map(|quant| (quant + 16) as u8))
}
