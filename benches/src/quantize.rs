//! Quantizing a vector of activations.

use crate::contender::{Agreement, Contender};
use ck_quant::{Isa, QuantizedVector};
use ck_testing::generate::{Rng, Values};

/// The activations of a case, the same ones every time.
#[must_use]
pub fn activations(len: usize) -> Vec<f32> {
    Values::Normal.row(&mut Rng::new(7), len)
}

/// This project's quantizer at one level.
pub struct Ours {
    isa: Isa,
    values: Vec<f32>,
    out: QuantizedVector,
}

impl Ours {
    /// The quantizer of `len` activations.
    ///
    /// # Panics
    ///
    /// If they are no whole number of blocks.
    #[must_use]
    pub fn new(isa: Isa, len: usize) -> Self {
        let out = QuantizedVector::zeros(len).expect("whole blocks");
        Self { isa, values: activations(len), out }
    }
}

impl Contender for Ours {
    fn name(&self) -> String {
        format!("ck, {}", self.isa)
    }

    fn run(&mut self, _copy: usize) {
        self.out.quantize(self.isa, &self.values).expect("finite numbers");
    }

    fn answer(&self) -> Vec<f32> {
        let blocks = self.out.scales().iter().zip(self.out.quants());
        blocks.flat_map(|(scale, quants)| quants.map(|quant| scale * f32::from(quant))).collect()
    }

    fn agreement(&self) -> Agreement {
        Agreement::Bits
    }
}
