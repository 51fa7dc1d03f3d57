//! Bytes as floats: the quantizers of every level give the blocks of the scalar ones, or their error.

use ck_isa::Isa;
use ck_quant::{BLOCK_LEN, BlockQ8_0, Format, QuantizedVector, q8_0};
use ck_testing::oracle;

/// Reads all bytes as floats, any number of them.
///
/// # Panics
///
/// If a quantizer disagrees with the oracle or with another level, or a failed call changed something.
pub fn check(bytes: &[u8]) {
    let values: Vec<f32> =
        bytes.chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]])).collect();
    if !values.len().is_multiple_of(BLOCK_LEN) {
        for format in [Format::Q5_0, Format::Q8_0] {
            assert!(format.quantize(&values).is_err(), "{} values", values.len());
        }
        assert!(QuantizedVector::zeros(values.len()).is_err());
    }
    let values = &values[..values.len() / BLOCK_LEN * BLOCK_LEN];
    rows(values);
    vectors(values);
}

/// The bytes of both formats are the oracle's.
fn rows(values: &[f32]) {
    for (format, expected) in
        [(Format::Q5_0, oracle::Format::Q5_0), (Format::Q8_0, oracle::Format::Q8_0)]
    {
        match (format.quantize(values), oracle::quantize_row(expected, values)) {
            (Ok(got), Ok(expected)) => assert_eq!(got, expected, "{format}"),
            (Err(_), Err(_)) => {}
            (got, expected) => panic!("{format}: {got:?} instead of {expected:?}"),
        }
    }
}

/// A vector quantized by any level has the blocks of the scalar row quantizer.
fn vectors(values: &[f32]) {
    let mut blocks = vec![BlockQ8_0::default(); values.len() / BLOCK_LEN];
    let row = q8_0::quantize_row(values, &mut blocks);
    for isa in Isa::available() {
        let before: Vec<f32> = (0..values.len()).map(|i| i as f32).collect();
        let mut x = QuantizedVector::zeros(values.len()).unwrap();
        x.quantize(isa, &before).unwrap();
        let untouched = x.clone();
        let result = x.quantize(isa, values);
        // As text, in which NaN equals NaN.
        assert_eq!(format!("{result:?}"), format!("{row:?}"), "{isa}");
        if result.is_err() {
            assert_eq!(x, untouched, "{isa}: a failed call changes nothing");
            continue;
        }
        for (index, block) in blocks.iter().enumerate() {
            let scale = block.scale().to_f32();
            assert_eq!(x.scales()[index].to_bits(), scale.to_bits(), "{isa}, block {index}");
            assert_eq!(&x.quants()[index], block.quants(), "{isa}, block {index}");
        }
        let mut part = untouched.clone();
        let some = blocks.len() / 3..blocks.len();
        part.quantize_blocks(isa, some.clone(), &values[some.start * BLOCK_LEN..]).unwrap();
        assert_eq!(part.quants()[some.clone()], x.quants()[some.clone()], "{isa}");
        assert_eq!(part.quants()[..some.start], untouched.quants()[..some.start], "{isa}");
    }
}
