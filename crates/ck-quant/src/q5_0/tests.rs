use super::*;
use crate::Isa;
use half::f16;

fn quantize(first: &[f32]) -> BlockQ5_0 {
    let mut values = [0.0; 32];
    values[..first.len()].copy_from_slice(first);
    let mut blocks = [BlockQ5_0::default()];
    quantize_row(&values, &mut blocks).unwrap();
    blocks[0]
}

fn dequantize(block: BlockQ5_0) -> [f32; 32] {
    let mut values = [f32::NAN; 32];
    dequantize_row(&[block], &mut values).unwrap();
    values
}

// Case B01: a block of zeros stays zero.
#[test]
fn an_all_zero_block_has_a_scale_of_negative_zero_and_stored_values_of_16() {
    for zero in [0.0, -0.0, f32::MIN_POSITIVE, -4e-7] {
        let block = quantize(&[zero; 32]);
        let mut bytes = [0u8; 22];
        bytes[1] = 0x80;
        bytes[2..6].copy_from_slice(&[0xff; 4]);
        assert_eq!(bytemuck::bytes_of(&block), bytes, "{zero:e}");
        assert_eq!(dequantize(block), [0.0; 32]);
        let mut activations = QuantizedVector::zeros(32).unwrap();
        activations.quantize(Isa::Scalar, &[127.0; 32]).unwrap();
        assert_eq!(vec_dot(&[block], &activations), Ok(0.0));
    }
}

// Case B07: which nibble and which high bit belong to which element.
#[test]
fn nibbles_and_high_bits_go_to_their_elements() {
    let mut bytes = [0u8; 22];
    bytes[..2].copy_from_slice(&0x3c00u16.to_le_bytes());
    bytes[2..6].copy_from_slice(&0x8000_0002u32.to_le_bytes());
    bytes[6 + 1] = 0x73;
    bytes[6 + 15] = 0x5a;
    let block: BlockQ5_0 = bytemuck::pod_read_unaligned(&bytes);
    let mut right = [-16.0; 32];
    (right[1], right[15], right[17], right[31]) = (3.0, -6.0, -9.0, 5.0);
    assert_eq!(dequantize(block), right);
    assert_eq!(block.high_bits(), 0x8000_0002);
    assert_eq!(BlockQ5_0::new(f16::ONE, block.stored()), block, "the parts make the block again");
}

// Case B08: the extreme keeps its sign, and the first of equals is taken.
#[test]
fn the_largest_value_keeps_its_sign() {
    for (first, scale_bits, back) in [
        (&[-16.0f32, 15.0, 7.0, -8.0][..], 0x3c00, &[-16.0f32, 15.0, 7.0, -8.0][..]),
        (&[16.0, -15.0, -7.0, 8.0], 0xbc00, &[16.0, -15.0, -7.0, 8.0]),
        (&[16.0, -16.0], 0xbc00, &[16.0, -15.0]),
        (&[-16.0, 16.0], 0x3c00, &[-16.0, 15.0]),
    ] {
        let block = quantize(first);
        assert_eq!(block.scale().to_bits(), scale_bits, "{first:?}");
        let values = dequantize(block);
        assert_eq!(&values[..back.len()], back, "{first:?}");
        assert!(values[back.len()..].iter().all(|x| *x == 0.0), "{first:?}");
    }
    assert_eq!(quantize(&[-16.0, 15.0, 7.0, -8.0]).stored()[..5], [0, 31, 23, 8, 16]);
}

// Case B09: this format truncates after adding a half.
#[test]
fn halves_are_truncated_upwards() {
    assert_eq!(quantize(&[16.0, -16.0, 0.5, -0.5]).stored()[..4], [0, 31, 16, 17]);
}

// Case B03 and kernel fault 8.
#[test]
fn what_cannot_be_quantized_is_an_error_that_names_it() {
    let first_too_large = 16.0f32 * 65520.0;
    let last_that_fits = f32::from_bits(first_too_large.to_bits() - 1);
    assert_eq!(quantize(&[last_that_fits]).scale(), f16::MIN);
    let mut blocks = [BlockQ5_0::new(f16::ONE, [7; 32])];
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, first_too_large, -first_too_large] {
        let mut values = [1.0; 32];
        values[9] = bad;
        match quantize_row(&values, &mut blocks) {
            Err(QuantError::NotFinite { index: 9, .. }) => assert!(!bad.is_finite()),
            Err(QuantError::ScaleOverflow { index: 9, .. }) => assert!(bad.is_finite()),
            other => panic!("{bad}: {other:?}"),
        }
        assert_eq!(blocks, [BlockQ5_0::new(f16::ONE, [7; 32])], "a failed call changes nothing");
    }
}

#[test]
fn the_integer_dot_product_is_exact_at_the_ends_of_the_range() {
    for (stored, quant) in [(0u8, -16), (31, 15), (16, 0)] {
        for activation in [-128i8, -127, -1, 0, 1, 127] {
            let block = BlockQ5_0::new(f16::ONE, [stored; 32]);
            let right = 32 * quant * i32::from(activation);
            assert_eq!(gemv::rows::scalar::block_dot(&block, &[activation; 32]), right);
        }
    }
}

// Case B03 (c): a scale that is not finite never becomes a number.
#[test]
fn a_row_with_a_scale_that_is_not_finite_is_an_error_that_names_the_block() {
    let activations = QuantizedVector::zeros(64).unwrap();
    for bits in [0x7c00, 0x7e00, 0xfc00] {
        let row = [BlockQ5_0::default(), BlockQ5_0::new(f16::from_bits(bits), [1; 32])];
        let mut values = [7.0; 64];
        for error in [
            vec_dot(&row, &activations).unwrap_err(),
            dequantize_row(&row, &mut values).unwrap_err(),
        ] {
            assert!(matches!(error, QuantError::BlockScale { block: 1, .. }), "{error}");
        }
        assert_eq!(values, [7.0; 64], "a failed call changes nothing");
    }
    let row = [BlockQ5_0::new(f16::MAX, [1; 32]); 2];
    assert_eq!(vec_dot(&row, &activations), Ok(0.0));
}
