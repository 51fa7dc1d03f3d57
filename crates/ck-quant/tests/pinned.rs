//! The bits of every operation, as they were when they were pinned: an order of operations that changes on all levels
//! alike stays within the oracle's bounds, but not here.

use ck_quant::{Format, Isa, Matrix, PackedMatrix, QuantizedVector};
use ck_testing::compare::assert_pinned;
use ck_testing::generate::Rng;

/// Rows that are no whole panels, and columns that are no whole group of blocks.
const ROWS: usize = 37;
const COLUMNS: usize = 11 * 32;

fn numbers(seed: u64, n: usize) -> Vec<f32> {
    let mut rng = Rng::new(seed);
    (0..n).map(|_| rng.uniform(-2.0, 2.0)).collect()
}

fn weights(format: Format) -> Vec<u8> {
    format.quantize(&numbers(1, ROWS * COLUMNS)).unwrap()
}

fn activations(isa: Isa) -> QuantizedVector {
    let mut activations = QuantizedVector::zeros(COLUMNS).unwrap();
    activations.quantize(isa, &numbers(2, COLUMNS)).unwrap();
    activations
}

// The numbers are made by additions and multiplications, but what makes them can be changed.
#[test]
fn the_inputs_are_those_of_the_pins() {
    assert_pinned("inputs", ["any"], 0x82c5_f34d_c155_4096, |_| numbers(1, 1000));
}

#[test]
fn quantized_rows() {
    for (format, pinned) in
        [(Format::Q5_0, 0xce3a_f33a_774e_c870), (Format::Q8_0, 0xb2a8_0d11_4d0b_0757)]
    {
        let bytes = weights(format);
        assert_pinned(&format.to_string(), ["any"], pinned, |_| {
            bytes.iter().map(|&b| b.into()).collect()
        });
    }
}

#[test]
fn quantized_activations() {
    assert_pinned("activations", Isa::available(), 0x3950_e58b_38ee_9236, |isa| {
        let activations = activations(isa);
        let quants = activations.quants().as_flattened().iter().map(|&quant| quant.into());
        activations.scales().iter().copied().chain(quants).collect()
    });
}

#[test]
fn gemv() {
    for (format, pinned) in
        [(Format::Q5_0, 0x61e0_6c90_4e2e_c8dc), (Format::Q8_0, 0xf69d_2829_3fd9_a4ca)]
    {
        let bytes = weights(format);
        let matrix = Matrix::new(format, ROWS, COLUMNS, &bytes).unwrap();
        let packed = PackedMatrix::pack(matrix).unwrap();
        assert_pinned(&format!("{format}, rows"), Isa::available(), pinned, |isa| {
            let mut out = vec![f32::NAN; ROWS];
            matrix.gemv(isa, &activations(isa), 0..ROWS, &mut out).unwrap();
            out
        });
        assert_pinned(&format!("{format}, packed"), Isa::available(), pinned, |isa| {
            let mut out = vec![f32::NAN; ROWS];
            packed.gemv(isa, &activations(isa), 0..ROWS, &mut out).unwrap();
            out
        });
    }
}
