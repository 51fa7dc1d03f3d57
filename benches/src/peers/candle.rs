//! candle's quantized matrix product. Its instructions are those that the compiler was allowed to use.

use crate::contender::{Agreement, Contender, Side};
use crate::gemv::Case;
use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{Device, Module, Tensor};
use ck_quant::Format;
use std::borrow::Cow;
use std::sync::Arc;

/// candle's product of one vector, the quantization of the vector included, on one thread if
/// `RAYON_NUM_THREADS=1` is set.
pub struct Gemv {
    weights: QMatMul,
    x: Tensor,
    out: Vec<f32>,
}

impl Gemv {
    /// The product of a case.
    ///
    /// # Errors
    ///
    /// What candle finds wrong.
    pub fn new(case: &Case) -> candle_core::Result<Self> {
        let kind = match case.format {
            Format::Q5_0 => GgmlDType::Q5_0,
            _ => GgmlDType::Q8_0,
        };
        let storage = QStorage::from_data(Cow::Borrowed(&case.bytes), &Device::Cpu, kind)?;
        let tensor = QTensor::new(storage, (case.rows, case.columns))?;
        let x = Tensor::from_slice(&case.x, (1, case.columns), &Device::Cpu)?;
        Ok(Self { weights: QMatMul::from_arc(Arc::new(tensor))?, x, out: Vec::new() })
    }
}

impl Contender for Gemv {
    fn name(&self) -> String {
        let built =
            if cfg!(target_feature = "avx2") { "compiled for avx2" } else { "default build" };
        format!("candle, {built}")
    }

    fn side(&self) -> Side {
        Side::Peer
    }

    fn run(&mut self, _copy: usize) {
        let product = self.weights.forward(&self.x).and_then(|y| y.flatten_all()?.to_vec1());
        self.out = product.expect("a product of matching shapes");
    }

    fn answer(&self) -> Vec<f32> {
        self.out.clone()
    }

    fn agreement(&self) -> Agreement {
        // Another order of summation, and activations quantized with another rounding.
        Agreement::Within(1e-2)
    }
}
