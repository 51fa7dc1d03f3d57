//! Matrix times vector: cases and our contenders.

use crate::contender::{Agreement, Contender};
use crate::memory::{Copies, PageKind};
use crate::record::Work;
use ck_quant::{Format, Isa, Matrix, PackedMatrix, QuantizedVector, Weights};
use ck_testing::generate::{Rng, Values};

/// Copies of the weights together have at least this many bytes when they are to stream from memory.
const STREAMED: usize = 256 << 20;

/// One shape, with weights and activations.
pub struct Case {
    /// The block format.
    pub format: Format,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub columns: usize,
    /// The weights as a file has them.
    pub bytes: Vec<u8>,
    /// The activations.
    pub x: Vec<f32>,
}

impl Case {
    /// A case of random numbers, the same ones every time.
    ///
    /// # Panics
    ///
    /// If the columns are no whole number of blocks.
    #[must_use]
    pub fn new(format: Format, rows: usize, columns: usize) -> Self {
        let mut rng = Rng::new(7);
        let weights = Values::Normal.row(&mut rng, rows * columns);
        let bytes = format.quantize(&weights).expect("finite weights in whole blocks");
        Self { format, rows, columns, bytes, x: Values::Normal.row(&mut rng, columns) }
    }

    /// The name in tables and records.
    #[must_use]
    pub fn name(&self, streaming: bool) -> String {
        let how = if streaming { "streaming" } else { "hot" };
        format!("{} {}x{} {how}", self.format, self.rows, self.columns)
    }

    /// What one product amounts to.
    #[must_use]
    pub fn work(&self) -> Work {
        let int_macs = (self.rows * self.columns) as f64;
        Work { bytes: self.bytes.len() as f64, int_macs, f32_macs: 0.0 }
    }

    /// Copies of the weights that a run goes through in turn.
    #[must_use]
    pub fn copies(&self, streaming: bool) -> usize {
        if streaming { STREAMED.div_ceil(self.bytes.len()) } else { 1 }
    }

    /// A view of a copy of the weights.
    ///
    /// # Panics
    ///
    /// If the bytes are not this case's.
    #[must_use]
    pub fn matrix<'a>(&self, bytes: &'a [u8]) -> Matrix<'a> {
        Matrix::new(self.format, self.rows, self.columns, bytes).expect("the case's own bytes")
    }

    /// The activations, quantized.
    ///
    /// # Panics
    ///
    /// Never: they are finite and whole blocks.
    #[must_use]
    pub fn quantized(&self) -> QuantizedVector {
        let mut x = QuantizedVector::zeros(self.columns).expect("whole blocks");
        x.quantize(Isa::Scalar, &self.x).expect("finite numbers");
        x
    }

    /// The answer that all must give.
    ///
    /// # Panics
    ///
    /// Never: the case's parts go together.
    #[must_use]
    pub fn expected(&self) -> Vec<f32> {
        let mut out = vec![0.0; self.rows];
        let matrix = self.matrix(&self.bytes);
        matrix.gemv(Isa::Scalar, &self.quantized(), 0..self.rows, &mut out).expect("a valid call");
        out
    }
}

/// This project's product, in one form at one level.
pub struct Ours<'a> {
    name: String,
    isa: Isa,
    copies: Vec<Weights<'a>>,
    x: QuantizedVector,
    out: Vec<f32>,
}

impl<'a> Ours<'a> {
    /// The product of packed weights that may have pages of `kind`.
    #[must_use]
    pub fn packed(case: &Case, isa: Isa, copies: &'a [PackedMatrix], kind: PageKind) -> Self {
        let name = format!("ck packed, {isa}, {}", kind.of_heap(case.bytes.len()).name());
        Self::new(name, case, isa, copies.iter().map(Weights::from).collect())
    }

    /// The product of weights in the order of a file.
    #[must_use]
    pub fn rows(case: &Case, isa: Isa, copies: &'a Copies, count: usize) -> Self {
        let name = format!("ck rows, {isa}, {}", copies.kind().name());
        let matrices = (0..count).map(|index| Weights::from(case.matrix(copies.get(index))));
        Self::new(name, case, isa, matrices.collect())
    }

    fn new(name: String, case: &Case, isa: Isa, copies: Vec<Weights<'a>>) -> Self {
        Self { name, isa, copies, x: case.quantized(), out: vec![f32::NAN; case.rows] }
    }
}

impl Contender for Ours<'_> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn run(&mut self, copy: usize) {
        let weights = self.copies[copy % self.copies.len()];
        let rows = 0..weights.rows();
        weights.gemv(self.isa, &self.x, rows, &mut self.out).expect("a valid call");
    }

    fn answer(&self) -> Vec<f32> {
        self.out.clone()
    }

    fn agreement(&self) -> Agreement {
        Agreement::Bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Case B60: one matrix of this shape lies in every second-level cache.
    #[test]
    fn streamed_copies_are_far_larger_than_a_cache() {
        let case = Case::new(Format::Q5_0, 896, 896);
        assert_eq!(case.bytes.len(), 551_936);
        assert_eq!(case.copies(false), 1);
        assert!(case.copies(true) * case.bytes.len() >= 256 << 20);
    }
}
