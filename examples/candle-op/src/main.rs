//! The packed matrix-vector product of ck-quant as a custom operation of candle: the last dimension of a tensor is
//! multiplied with quantized weights.
//!
//!     cargo run --release       # in this folder

use candle_core::{CpuStorage, CustomOp1, Device, Error, Layout, Result, Shape, Tensor};
use ck_quant::{Format, Isa, Matrix, PackedMatrix, QuantError, QuantizedVector};

/// `y = W x` for every row `x` of a tensor.
struct PackedLinear {
    weights: PackedMatrix,
    isa: Isa,
}

impl PackedLinear {
    /// The operation with weights as they lie in a GGUF file.
    fn new(
        format: Format,
        rows: usize,
        columns: usize,
        bytes: &[u8],
    ) -> std::result::Result<Self, QuantError> {
        let weights = PackedMatrix::pack(Matrix::new(format, rows, columns, bytes)?)?;
        Ok(Self { weights, isa: Isa::detect() })
    }
}

impl CustomOp1 for PackedLinear {
    fn name(&self) -> &'static str {
        "packed-linear"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let Some((from, to)) = layout.contiguous_offsets() else {
            candle_core::bail!("packed-linear: expected a contiguous tensor, found {layout:?}");
        };
        let x = &storage.as_slice::<f32>()?[from..to];
        let (rows, columns) = (self.weights.rows(), self.weights.columns());
        let mut dims = layout.dims().to_vec();
        if dims.last() != Some(&columns) {
            candle_core::bail!(
                "packed-linear: expected a last dimension of {columns}, found {dims:?}"
            );
        }
        let mut y = vec![0.0; x.len() / columns * rows];
        let mut activations = QuantizedVector::zeros(columns).map_err(Error::wrap)?;
        for (x, y) in x.chunks_exact(columns).zip(y.chunks_exact_mut(rows)) {
            activations.quantize(self.isa, x).map_err(Error::wrap)?;
            self.weights.gemv(self.isa, &activations, 0..rows, y).map_err(Error::wrap)?;
        }
        if let Some(last) = dims.last_mut() {
            *last = rows;
        }
        Ok((CpuStorage::F32(y), Shape::from(dims)))
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let (rows, columns) = (48, 256);
    let weights = Tensor::randn(0f32, 0.1, (rows, columns), &Device::Cpu)?;
    let x = Tensor::randn(0f32, 1.0, (3, columns), &Device::Cpu)?;
    let exact = x.matmul(&weights.t()?)?;

    let bytes = Format::Q8_0.quantize(&weights.flatten_all()?.to_vec1()?)?;
    let linear = PackedLinear::new(Format::Q8_0, rows, columns, &bytes)?;
    let product = x.apply_op1_no_bwd(&linear)?;

    let error = (&product - &exact)?.abs()?.max_all()?.to_scalar::<f32>()?;
    let largest = exact.abs()?.max_all()?.to_scalar::<f32>()?;
    println!("{:?} by {}: largest error {error:.4} of {largest:.4}", product.shape(), linear.isa);
    assert!(error < 0.02 * largest);

    // What does not fit is candle's error, with ck-quant's sentence in it where it comes from there.
    let poisoned = Tensor::full(f32::NAN, (1, columns), &Device::Cpu)?;
    let error = poisoned.apply_op1_no_bwd(&linear).unwrap_err().to_string();
    // candle puts a backtrace behind it where one is asked for.
    println!("a NaN is refused: {}", error.lines().next().unwrap_or_default());
    Ok(())
}
