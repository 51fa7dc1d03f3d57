//! Weights to Q5_0 and Q8_0, dot products with a vector of activations, and the error of both formats.
//!
//!     cargo run -p ck-quant --example quantize_and_dot

use ck_quant::{Format, Isa, Matrix, PackedMatrix, QuantError, QuantizedVector};

const ROWS: usize = 64;
const COLUMNS: usize = 256;

fn main() -> Result<(), QuantError> {
    let isa = Isa::detect();
    let weights: Vec<f32> = (0..ROWS * COLUMNS).map(|i| (i as f32 * 0.37).sin()).collect();
    let x: Vec<f32> = (0..COLUMNS).map(|i| (i as f32 * 0.11).cos()).collect();
    let exact: Vec<f64> = weights.chunks_exact(COLUMNS).map(|row| dot(row, &x)).collect();

    let mut activations = QuantizedVector::zeros(COLUMNS)?;
    activations.quantize(isa, &x)?;
    for format in [Format::Q5_0, Format::Q8_0] {
        let bytes = format.quantize(&weights)?;
        let matrix = Matrix::new(format, ROWS, COLUMNS, &bytes)?;
        let (mut plain, mut packed) = ([0.0; ROWS], [0.0; ROWS]);
        matrix.gemv(isa, &activations, 0..ROWS, &mut plain)?;
        PackedMatrix::pack(matrix)?.gemv(isa, &activations, 0..ROWS, &mut packed)?;
        assert!(plain.iter().zip(&packed).all(|(a, b)| a.to_bits() == b.to_bits()));

        let worst = plain.iter().zip(&exact).map(|(got, exact)| (f64::from(*got) - exact).abs());
        println!(
            "{format}: {} bytes instead of {}, largest error {:.3} of a largest product of {:.3} ({isa})",
            bytes.len(),
            4 * weights.len(),
            worst.fold(0.0, f64::max),
            exact.iter().fold(0.0, |most: f64, y| most.max(y.abs())),
        );
    }
    Ok(())
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}
