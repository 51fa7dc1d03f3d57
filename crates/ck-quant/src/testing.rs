//! What the tests of this crate share.

use crate::{BLOCK_LEN, BlockQ8_0, Format, Isa, Matrix, QuantizedVector};
use ck_testing::generate::{Quants, Rng, Scales, random_row};
use ck_testing::oracle;
use std::sync::Once;

/// Every level of this machine; the first call of a run prints them.
///
/// They are those that the environment [expects](ck_testing::run::EXPECT_LEVELS), if it does.
pub(crate) fn levels() -> Vec<Isa> {
    static PRINT: Once = Once::new();
    let levels: Vec<Isa> = Isa::available().collect();
    PRINT.call_once(|| {
        let names: Vec<String> = levels.iter().map(Isa::to_string).collect();
        // Straight to the terminal: what a test prints is shown only when it fails.
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "levels under test: {}", names.join(", "));
    });
    ck_testing::run::assert_expected_levels(&levels);
    levels
}

/// A matrix of random block bytes and a vector of activations.
pub(crate) struct Case {
    pub(crate) format: Format,
    pub(crate) rows: usize,
    pub(crate) blocks: usize,
    pub(crate) bytes: Vec<u8>,
    pub(crate) x: QuantizedVector,
}

impl Case {
    pub(crate) const FORMATS: [Format; 2] = [Format::Q5_0, Format::Q8_0];

    /// `rows` rows of `blocks` blocks; the activations are of the same kind.
    pub(crate) fn random(
        format: Format,
        rng: &mut Rng,
        (rows, blocks): (usize, usize),
        scales: Scales,
        quants: Quants,
    ) -> Self {
        let bytes = random_row(Self::oracle_format(format), rng, rows * blocks, scales, quants);
        Self { format, rows, blocks, bytes, x: Self::activations(rng, blocks, scales, quants) }
    }

    /// Activations of any bytes, also those that no quantizer makes.
    pub(crate) fn activations(
        rng: &mut Rng,
        blocks: usize,
        scales: Scales,
        quants: Quants,
    ) -> QuantizedVector {
        let bytes = random_row(oracle::Format::Q8_0, rng, blocks, scales, quants);
        let blocks: &[BlockQ8_0] = bytemuck::cast_slice(&bytes);
        let mut x = QuantizedVector::zeros(blocks.len() * BLOCK_LEN).unwrap();
        x.set_blocks(blocks).unwrap();
        x
    }

    pub(crate) fn oracle_format(format: Format) -> oracle::Format {
        match format {
            Format::Q5_0 => oracle::Format::Q5_0,
            Format::Q8_0 => oracle::Format::Q8_0,
        }
    }

    pub(crate) fn matrix(&self) -> Matrix<'_> {
        Matrix::new(self.format, self.rows, self.blocks * BLOCK_LEN, &self.bytes).unwrap()
    }

    /// The oracle's product of a row.
    pub(crate) fn oracle(&self, row: usize) -> oracle::Sum {
        oracle::row_dot(&self.row(row), &self.activation_blocks())
    }

    /// The oracle's integer dot product of a block.
    pub(crate) fn block_dot(&self, row: usize, block: usize) -> i64 {
        oracle::block_dot(&self.row(row)[block], &self.activation_blocks()[block])
    }

    fn row(&self, row: usize) -> Vec<oracle::Block> {
        let format = Self::oracle_format(self.format);
        let len = self.blocks * format.block_bytes();
        oracle::decode_row(format, &self.bytes[row * len..(row + 1) * len])
    }

    fn activation_blocks(&self) -> Vec<oracle::Block> {
        let x = self.x.scales().iter().zip(self.x.quants());
        x.map(|(scale, quants)| oracle::Block {
            scale: half::f16::from_f32(*scale),
            quants: *quants,
        })
        .collect()
    }
}
