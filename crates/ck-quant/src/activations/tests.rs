use super::*;
use crate::testing::levels;
use ck_testing::compare::{Failures, check_bits};
use ck_testing::generate::{Placed, Rng, Values, sizes};
use ck_testing::oracle;

/// A vector that no quantizer made, so that whatever is not written shows.
fn marked(blocks: usize) -> QuantizedVector {
    let mut x = QuantizedVector::zeros(blocks * BLOCK_LEN).unwrap();
    x.scales.fill(77.0);
    x.quants.fill([-128; BLOCK_LEN]);
    x.corrections.fill(i32::MIN);
    x.notes.fill(f32::NAN);
    x
}

/// The Q8_0 bytes of a vector, if its corrections go with its quants.
fn bytes(x: &QuantizedVector) -> Result<Vec<u8>, String> {
    for (block, quants) in x.quants.iter().enumerate() {
        let right: i32 = quants.iter().map(|quant| -128 * i32::from(*quant)).sum();
        if x.corrections[block] != right {
            return Err(format!("block {block}: correction {}, not {right}", x.corrections[block]));
        }
    }
    let blocks = x.scales.iter().zip(&x.quants);
    let blocks = blocks.map(|(scale, quants)| {
        let half = half::f16::from_f32(*scale);
        check_bits(&[half.to_f32()], &[*scale]).map(|()| BlockQ8_0::new(half, *quants))
    });
    Ok(bytemuck::cast_slice(&blocks.collect::<Result<Vec<_>, _>>()?).to_vec())
}

fn compare(x: &QuantizedVector, right: &[u8]) -> Result<(), String> {
    let got = bytes(x)?;
    match got.iter().zip(right).position(|(got, right)| got != right) {
        None if got.len() == right.len() => Ok(()),
        None => Err(format!("{} bytes, expected {}", got.len(), right.len())),
        Some(at) => Err(format!("byte {} of block {} differs", at % 34, at / 34)),
    }
}

// Case B01 among them: blocks of zeros and of numbers whose scale rounds to zero.
#[test]
fn every_level_makes_the_bytes_of_the_oracle() {
    let mut failures = Failures::default();
    let mut rng = Rng::new(21);
    for values in Values::QUANTIZABLE {
        for blocks in sizes::BLOCKS {
            let row = values.row(&mut rng, blocks * BLOCK_LEN);
            let right = oracle::quantize_row(oracle::Format::Q8_0, &row).unwrap();
            for isa in levels() {
                for offset in [0, 4, 32, 60] {
                    let placed = Placed::new(&row, offset, f32::NAN);
                    let mut x = marked(blocks);
                    x.quantize(isa, placed.as_slice()).unwrap();
                    let context = format_args!("{isa}, {values:?}, {blocks} blocks, +{offset}");
                    failures.add(context, compare(&x, &right));
                }
            }
        }
    }
    failures.assert_none();
}

// Case B09: ties go to even at every level, wherever they stand.
#[test]
fn ties_are_rounded_to_even_at_every_level() {
    let ties = [127.0, 0.5, 1.5, 2.5, -0.5, -2.5, 0.499_999_97, 126.5];
    for isa in levels() {
        for start in 0..=24 {
            let mut values = [0.0; BLOCK_LEN];
            values[start..start + 8].copy_from_slice(&ties);
            let mut x = marked(1);
            x.quantize(isa, &values).unwrap();
            assert_eq!(x.quants[0][start..start + 8], [127, 0, 2, 2, 0, -2, 0, 126], "{isa}");
        }
    }
}

// Case B03: what is not finite or too large is the scalar code's error, and changes nothing.
#[test]
fn every_level_refuses_what_the_scalar_code_refuses() {
    let too_large = 127.0 * 65520.0;
    for isa in levels() {
        for blocks in [1, 3, 4, 5, 17] {
            for bad in Values::NON_FINITE.into_iter().chain([too_large, -too_large]) {
                for index in 0..blocks * BLOCK_LEN {
                    let mut values = vec![1.0; blocks * BLOCK_LEN];
                    values[index] = bad;
                    let mut x = marked(blocks);
                    let error = x.quantize(isa, &values).unwrap_err();
                    let right = q8_0::check(&values).unwrap_err();
                    // A NaN differs from itself, so that the texts are compared.
                    assert_eq!(error.to_string(), right.to_string(), "{isa}");
                    let untouched = marked(blocks);
                    assert_eq!(x, untouched, "{isa}: a failed call changes nothing");
                    assert_eq!(x.corrections, untouched.corrections, "{isa}");
                }
            }
            let last_that_fits = f32::from_bits(f32::to_bits(too_large) - 1);
            let mut x = marked(blocks);
            x.quantize(isa, &vec![last_that_fits; blocks * BLOCK_LEN]).unwrap();
        }
    }
}

#[test]
fn vectors_are_equal_if_their_scales_and_quants_are() {
    let vector = |scale, quant| {
        let mut x = QuantizedVector::zeros(2 * BLOCK_LEN).unwrap();
        (x.scales[1], x.quants[1][31]) = (scale, quant);
        x
    };
    assert_eq!(vector(1.0, 5), vector(1.0, 5));
    assert_ne!(vector(1.0, 5), vector(2.0, 5));
    assert_ne!(vector(1.0, 5), vector(1.0, 6));
    assert!(!vector(0.0, 0).is_empty());
    assert!(QuantizedVector::zeros(0).unwrap().is_empty());
}

#[test]
fn a_range_of_blocks_is_quantized_alone() {
    let mut rng = Rng::new(22);
    let row = Values::Normal.row(&mut rng, 9 * BLOCK_LEN);
    let mut whole = marked(9);
    whole.quantize(Isa::Scalar, &row).unwrap();
    for isa in levels() {
        for start in 0..=9 {
            for end in start..=9 {
                let mut x = marked(9);
                let part = &row[start * BLOCK_LEN..end * BLOCK_LEN];
                x.quantize_blocks(isa, start..end, part).unwrap();
                for block in 0..9 {
                    let inside = (start..end).contains(&block);
                    let right = if inside { &whole } else { &marked(9) };
                    assert_eq!(x.scales[block], right.scales[block]);
                    assert_eq!(x.quants[block], right.quants[block]);
                    assert_eq!(x.corrections[block], right.corrections[block]);
                }
            }
        }
        let mut x = marked(2);
        let error = x.quantize_blocks(isa, 1..3, &[0.0; 64]).unwrap_err();
        assert_eq!(error, QuantError::Blocks { blocks: 2, start: 1, end: 3 });
        assert!(x.quantize_blocks(isa, 0..1, &[0.0; 64]).is_err());
        assert!(x.quantize_blocks(isa, 0..1, &[0.0; 31]).is_err());
        assert_eq!(x, marked(2));
    }
}
