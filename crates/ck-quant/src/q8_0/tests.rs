use super::*;
use crate::{Format, Isa};
use half::f16;

fn block(values: &[f32]) -> [f32; 32] {
    let mut block = [0.0; 32];
    block[..values.len()].copy_from_slice(values);
    block
}

fn quantize(values: &[f32]) -> Result<BlockQ8_0, QuantError> {
    let mut blocks = [BlockQ8_0::default()];
    quantize_row(values, &mut blocks)?;
    Ok(blocks[0])
}

// Case B01: a block of zeros stays zero.
#[test]
fn an_all_zero_block_is_34_zero_bytes() {
    for zero in [0.0, -0.0, f32::MIN_POSITIVE, 1e-6] {
        let block = quantize(&[zero; 32]).unwrap();
        assert_eq!(bytemuck::bytes_of(&block), [0; 34], "{zero:e}");
        let mut values = [f32::NAN; 32];
        dequantize_row(&[block], &mut values).unwrap();
        assert_eq!(values, [0.0; 32]);
        let mut activations = QuantizedVector::zeros(32).unwrap();
        activations.quantize(Isa::Scalar, &[127.0; 32]).unwrap();
        assert_eq!(vec_dot(&[block], &activations), Ok(0.0));
    }
}

// Case B03: what is not finite is an error.
#[test]
fn a_value_that_is_not_finite_is_an_error_that_names_it() {
    for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut values = block(&[127.0]);
        values[5] = bad;
        let mut blocks = [BlockQ8_0::new(f16::ONE, [7; 32])];
        match quantize_row(&values, &mut blocks) {
            Err(QuantError::NotFinite { index: 5, value }) => {
                assert_eq!(value.to_bits(), bad.to_bits());
            }
            other => panic!("{bad}: {other:?}"),
        }
        assert_eq!(blocks, [BlockQ8_0::new(f16::ONE, [7; 32])], "a failed call changes nothing");
    }
}

// Kernel fault 8: large activations overflow the f16 scale.
#[test]
fn a_scale_beyond_f16_is_an_error_exactly_from_where_it_rounds_to_infinity() {
    let first_too_large = 127.0f32 * 65520.0;
    let last_that_fits = f32::from_bits(first_too_large.to_bits() - 1);
    assert!(!f16::from_f32(first_too_large / 127.0).is_finite());
    assert_eq!(quantize(&block(&[last_that_fits])).unwrap().scale(), f16::MAX);
    assert_eq!(quantize(&block(&[-last_that_fits])).unwrap().quants()[0], -127);
    let error = quantize(&block(&[0.0, -first_too_large])).unwrap_err();
    assert_eq!(error, QuantError::ScaleOverflow { index: 1, value: -first_too_large });
}

// Case B05: every byte, -128 included, multiplies exactly.
#[test]
fn extreme_bytes_multiply_exactly() {
    for (a, b, right) in [
        (-1i8, -128i8, 4096),
        (-128, -1, 4096),
        (-128, -128, 524_288),
        (127, 127, 516_128),
        (127, -128, -520_192),
    ] {
        let weights = BlockQ8_0::new(f16::ONE, [a; 32]);
        let mut activations = QuantizedVector::zeros(32).unwrap();
        activations.set_blocks(&[BlockQ8_0::new(f16::ONE, [b; 32])]).unwrap();
        assert_eq!(gemv::rows::scalar::block_dot(&weights, &[b; 32]), right);
        assert_eq!(vec_dot(&[weights], &activations), Ok(right as f32));
    }
}

// Case B09: ties go to even.
#[test]
fn ties_are_rounded_to_even() {
    let values = block(&[127.0, 0.5, 1.5, 2.5, -0.5, -2.5, 0.499_999_97, 126.5]);
    let quantized = quantize(&values).unwrap();
    assert_eq!(quantized.scale(), f16::ONE);
    assert_eq!(quantized.quants()[..8], [127, 0, 2, 2, 0, -2, 0, 126]);
    assert_eq!(quantized.quants()[8..], [0; 24]);
}

// Kernel fault 7 and case B12: a length that is no whole number of blocks is not cut to one.
#[test]
fn lengths_that_do_not_match_are_errors() {
    let mut blocks = [BlockQ8_0::default(); 2];
    assert_eq!(
        quantize_row(&[0.0; 33], &mut blocks),
        Err(QuantError::Length { what: "values", expected: 64, found: 33 })
    );
    let wrong = QuantError::Length { what: "values", expected: 64, found: 32 };
    assert_eq!(quantize_row(&[0.0; 32], &mut blocks), Err(wrong.clone()));
    assert_eq!(dequantize_row(&blocks, &mut [0.0; 32]), Err(wrong));
    assert_eq!(
        dequantize_row(&blocks, &mut [0.0; 63]),
        Err(QuantError::Length { what: "values", expected: 64, found: 63 })
    );
    let activations = QuantizedVector::zeros(32).unwrap();
    let error = vec_dot(&blocks, &activations).unwrap_err();
    let wrong = QuantError::Length { what: "activations", expected: 64, found: 32 };
    assert_eq!(error, wrong);
    assert!(Format::Q8_0.quantize(&[0.0; 31]).is_err());
}

#[test]
fn the_activation_vector_holds_what_the_row_quantizer_makes() {
    let values: Vec<f32> = (0..96).map(|i| (i as f32 - 40.3) * 0.7).collect();
    let mut blocks = [BlockQ8_0::default(); 3];
    quantize_row(&values, &mut blocks).unwrap();
    let mut activations = QuantizedVector::zeros(96).unwrap();
    activations.quantize(Isa::Scalar, &values).unwrap();
    let mut taken_over = QuantizedVector::zeros(96).unwrap();
    taken_over.set_blocks(&blocks).unwrap();
    assert_eq!(activations, taken_over);
    for (index, block) in blocks.iter().enumerate() {
        assert_eq!(activations.scales()[index], block.scale().to_f32());
        assert_eq!(&activations.quants()[index], block.quants());
        let sum: i32 = block.quants().iter().map(|q| i32::from(*q)).sum();
        assert_eq!(activations.view().corrections[index], -128 * sum);
    }
    let before = activations.clone();
    assert!(activations.quantize(Isa::Scalar, &[f32::NAN; 96]).is_err());
    assert!(activations.quantize(Isa::Scalar, &[1.0; 64]).is_err());
    assert!(activations.set_blocks(&[BlockQ8_0::new(f16::NAN, [0; 32]); 3]).is_err());
    assert_eq!(activations, before, "a failed call changes nothing");
}

// Case B03 (c): a scale that is not finite never becomes a number.
#[test]
fn a_row_with_a_scale_that_is_not_finite_is_an_error_that_names_the_block() {
    let activations = QuantizedVector::zeros(64).unwrap();
    for bits in [0x7c00, 0x7e00, 0xfc00] {
        let row = [BlockQ8_0::default(), BlockQ8_0::new(f16::from_bits(bits), [1; 32])];
        let mut values = [7.0; 64];
        for error in [
            vec_dot(&row, &activations).unwrap_err(),
            dequantize_row(&row, &mut values).unwrap_err(),
        ] {
            assert!(matches!(error, QuantError::BlockScale { block: 1, .. }), "{error}");
        }
        assert_eq!(values, [7.0; 64], "a failed call changes nothing");
    }
    let row = [BlockQ8_0::new(f16::MAX, [1; 32]); 2];
    assert_eq!(vec_dot(&row, &activations), Ok(0.0));
}

#[test]
fn activations_that_no_memory_holds_are_an_error() {
    for len in [usize::MAX - 31, 1 << 50] {
        let error = QuantizedVector::zeros(len).unwrap_err();
        assert!(matches!(error, QuantError::Allocation { .. }), "{len}: {error}");
    }
}
