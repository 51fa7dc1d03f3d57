//! Every level and both forms against the scalar rows, by bits; the scalar rows against the oracle.

use crate::testing::{Case, levels};
use crate::{BLOCK_LEN, Format, Isa, Matrix, PackedMatrix, QuantError, QuantizedVector, Weights};
use ck_testing::compare::{Failures, check_bits, check_within};
use ck_testing::generate::{Placed, Quants, Rng, Scales, Values, sizes};
use ck_testing::{bounds, oracle};
use std::ops::Range;

/// The products of some rows by one level, written into guarded memory that held NaN.
fn gemv(isa: Isa, weights: Weights<'_>, x: &QuantizedVector, rows: Range<usize>) -> Vec<f32> {
    let mut out = Placed::new(&vec![f32::NAN; rows.len()], 4, f32::NAN);
    weights.gemv(isa, x, rows, out.as_mut_slice()).unwrap();
    out.assert_guards();
    out.as_slice().to_vec()
}

/// Adds the comparison of every level and form with the scalar rows.
fn compare_all(failures: &mut Failures, context: &str, case: &Case, rows: Range<usize>) {
    let matrix = case.matrix();
    let packed = PackedMatrix::pack(matrix).unwrap();
    let expected = gemv(Isa::Scalar, matrix.into(), &case.x, rows.clone());
    for isa in levels() {
        for (form, weights) in [("rows", Weights::from(matrix)), ("panels", Weights::from(&packed))]
        {
            let got = gemv(isa, weights, &case.x, rows.clone());
            failures.add(
                format_args!("{isa}, {form}, {context}, rows {rows:?}"),
                check_bits(&got, &expected),
            );
        }
    }
}

#[test]
fn every_level_and_form_gives_the_bits_of_the_scalar_rows() {
    let mut failures = Failures::default();
    let mut rng = Rng::new(1);
    for format in Case::FORMATS {
        for blocks in sizes::BLOCKS {
            for rows in sizes::ROWS {
                if rows * blocks > 4000 {
                    continue;
                }
                let case =
                    Case::random(format, &mut rng, (rows, blocks), Scales::Weights, Quants::Any);
                let context = format!("{format}, {rows} rows of {blocks} blocks");
                compare_all(&mut failures, &context, &case, 0..rows);
            }
        }
    }
    failures.assert_none();
}

// Case B05 among them: -128 and 127 on both sides, and scales at the ends of f16.
#[test]
fn extreme_bytes_and_scales_give_the_same_bits_at_every_level() {
    let mut failures = Failures::default();
    let mut rng = Rng::new(2);
    for format in Case::FORMATS {
        for scales in Scales::ALL {
            for quants in Quants::ALL {
                for x_quants in Quants::ALL {
                    let mut case = Case::random(format, &mut rng, (17, 9), scales, quants);
                    case.x = Case::activations(&mut rng, 9, scales, x_quants);
                    let context = format!("{format}, {scales:?}, {quants:?} times {x_quants:?}");
                    compare_all(&mut failures, &context, &case, 0..17);
                }
            }
        }
    }
    failures.assert_none();
}

#[test]
fn rows_at_every_byte_alignment_give_the_same_bits() {
    let mut failures = Failures::default();
    let mut rng = Rng::new(3);
    for format in Case::FORMATS {
        let case = Case::random(format, &mut rng, (9, 9), Scales::Weights, Quants::Any);
        let expected = gemv(Isa::Scalar, case.matrix().into(), &case.x, 0..9);
        for offset in sizes::BYTE_OFFSETS {
            // The guards are NaN scales to whoever reads them.
            let placed = Placed::new(&case.bytes, offset, 0xff);
            let matrix = Matrix::new(format, 9, 9 * BLOCK_LEN, placed.as_slice()).unwrap();
            for isa in levels() {
                let got = gemv(isa, matrix.into(), &case.x, 0..9);
                let context = format_args!("{isa}, {format}, offset {offset}");
                failures.add(context, check_bits(&got, &expected));
            }
        }
    }
    failures.assert_none();
}

// Case B11: a share of rows may begin and end anywhere, and may be empty.
#[test]
fn any_range_of_rows_gives_the_bits_of_the_whole() {
    let mut failures = Failures::default();
    let mut rng = Rng::new(4);
    for format in Case::FORMATS {
        let case = Case::random(format, &mut rng, (37, 5), Scales::Weights, Quants::Any);
        let packed = PackedMatrix::pack(case.matrix()).unwrap();
        let whole = gemv(Isa::Scalar, case.matrix().into(), &case.x, 0..37);
        for isa in levels() {
            for (form, weights) in [("rows", case.matrix().into()), ("panels", (&packed).into())] {
                for start in 0..=37 {
                    for end in start..=37 {
                        let got = gemv(isa, weights, &case.x, start..end);
                        let context = format_args!("{isa}, {format} {form}, {start}..{end}");
                        failures.add(context, check_bits(&got, &whole[start..end]));
                    }
                }
            }
        }
    }
    failures.assert_none();
}

// Case B11: rows divided among teams of every size.
#[test]
fn shares_of_a_team_cover_every_row() {
    for rows in [1, 7, 13, 897] {
        let ones = Format::Q8_0.quantize(&vec![127.0; rows * BLOCK_LEN]).unwrap();
        let matrix = Matrix::new(Format::Q8_0, rows, BLOCK_LEN, &ones).unwrap();
        let packed = PackedMatrix::pack(matrix).unwrap();
        let mut x = QuantizedVector::zeros(BLOCK_LEN).unwrap();
        x.quantize(Isa::detect(), &[127.0; BLOCK_LEN]).unwrap();
        for isa in levels() {
            for weights in [Weights::from(matrix), Weights::from(&packed)] {
                for threads in sizes::THREADS {
                    let mut out = Placed::new(&vec![f32::NAN; rows], 0, f32::NAN);
                    for member in 0..threads {
                        let share = rows * member / threads..rows * (member + 1) / threads;
                        let part = &mut out.as_mut_slice()[share.clone()];
                        weights.gemv(isa, &x, share, part).unwrap();
                    }
                    out.assert_guards();
                    let right = 32.0 * 127.0 * 127.0;
                    assert!(out.as_slice().iter().all(|y| *y == right), "{isa}, {threads}");
                }
            }
        }
    }
}

#[test]
fn block_dots_of_any_columns_add_up_to_the_bits_of_the_product() {
    let mut failures = Failures::default();
    let mut rng = Rng::new(5);
    for format in Case::FORMATS {
        for (rows, blocks) in [(1, 1), (17, 8), (33, 19), (16, 28)] {
            let case = Case::random(format, &mut rng, (rows, blocks), Scales::Weights, Quants::Any);
            let packed = PackedMatrix::pack(case.matrix()).unwrap();
            let expected = gemv(Isa::Scalar, case.matrix().into(), &case.x, 0..rows);
            for isa in levels() {
                for weights in [Weights::from(case.matrix()), Weights::from(&packed)] {
                    for owners in [1, 2, 3, 5] {
                        let got = sum_of_shares(isa, weights, &case, owners);
                        let context = format_args!("{isa}, {format} {rows}x{blocks}, {owners}");
                        failures.add(context, check_bits(&got, &expected[rows / 3..]));
                    }
                }
            }
        }
    }
    failures.assert_none();
}

/// The products of the last two thirds of the rows, each owner of columns having its own activations and dots.
fn sum_of_shares(isa: Isa, weights: Weights<'_>, case: &Case, owners: usize) -> Vec<f32> {
    let blocks = weights.columns() / BLOCK_LEN;
    let rows = weights.rows() / 3..weights.rows();
    let mut sums = vec![0.0; rows.len()];
    for owner in 0..owners {
        let share = blocks * owner / owners..blocks * (owner + 1) / owners;
        let mut dots = vec![i32::MIN; rows.len() * share.len()];
        weights.block_dots(isa, &case.x, rows.clone(), share.clone(), &mut dots).unwrap();
        for (index, dot) in dots.iter().enumerate() {
            let (row, block) =
                (rows.start + index / share.len(), share.start + index % share.len());
            assert_eq!(i64::from(*dot), case.block_dot(row, block), "{isa}: row {row}, {block}");
        }
        weights.add_block_dots(isa, &case.x, rows.clone(), share, &dots, &mut sums).unwrap();
    }
    sums
}

#[test]
fn with_scales_that_are_powers_of_two_the_sum_is_exact() {
    let mut rng = Rng::new(6);
    let (mut exact, mut cases) = (0, 0);
    for format in Case::FORMATS {
        for blocks in sizes::BLOCKS {
            let quants = if format == Format::Q5_0 { Quants::Any } else { Quants::Small };
            let case = Case::random(format, &mut rng, (17, blocks), Scales::PowersOfTwo, quants);
            let got = gemv(Isa::Scalar, case.matrix().into(), &case.x, 0..17);
            for (row, got) in got.into_iter().enumerate() {
                let sum = case.oracle(row);
                cases += 1;
                if sum.is_exact_in_f32(0.25) {
                    exact += 1;
                    assert_eq!(f64::from(got), sum.value, "{format}, {blocks} blocks, row {row}");
                }
            }
        }
    }
    assert!(exact * 10 >= cases * 9, "{exact} of {cases} sums were exact");
}

#[test]
fn with_any_scales_the_sum_is_within_the_derived_bound() {
    let mut failures = Failures::default();
    let mut rng = Rng::new(7);
    for format in Case::FORMATS {
        for blocks in sizes::BLOCKS {
            for scales in [Scales::One, Scales::Weights, Scales::AnyFinite] {
                let case = Case::random(format, &mut rng, (17, blocks), scales, Quants::Any);
                let got = gemv(Isa::Scalar, case.matrix().into(), &case.x, 0..17);
                let sums: Vec<_> = (0..17).map(|row| case.oracle(row)).collect();
                // The product of two f16 is exact in f32 unless it is subnormal: it is a multiple of 2^-48.
                let values: Vec<f64> = sums.iter().map(|sum| sum.value).collect();
                let limits: Vec<f64> = sums.iter().map(bounds::sequential_sum).collect();
                let context = format_args!("{format}, {blocks} blocks, {scales:?}");
                failures.add(context, check_within(&got, &values, &limits));
            }
        }
    }
    failures.assert_none();
}

/// The methods of a matrix are those of the weights that it is.
#[test]
fn a_matrix_multiplies_as_its_weights_do() {
    let mut rng = Rng::new(10);
    for format in Case::FORMATS {
        let case = Case::random(format, &mut rng, (20, 3), Scales::Weights, Quants::Any);
        let (matrix, packed) = (case.matrix(), PackedMatrix::pack(case.matrix()).unwrap());
        assert_eq!(matrix.bytes(), case.bytes);
        let expected = gemv(Isa::Scalar, matrix.into(), &case.x, 3..18);
        let mut out = [[f32::NAN; 15]; 2];
        matrix.gemv(Isa::Scalar, &case.x, 3..18, &mut out[0]).unwrap();
        packed.gemv(Isa::Scalar, &case.x, 3..18, &mut out[1]).unwrap();
        for out in out {
            assert_eq!(check_bits(&out, &expected), Ok(()), "{format}");
        }
    }
}

// Case B03: a matrix with a scale that is no number says where.
#[test]
fn the_row_and_block_of_a_bad_scale_are_named() {
    let mut bytes = [0; 3 * 2 * 34];
    bytes[5 * 34 + 1] = 0x7C;
    let error = Matrix::new(Format::Q8_0, 3, 64, &bytes).unwrap_err();
    assert_eq!(error, QuantError::BlockScale { row: 2, block: 1, scale: f32::INFINITY });
}

// Case B12: what is declared against what is there.
#[test]
fn arguments_that_do_not_go_together_are_errors_and_change_nothing() {
    let bytes = vec![0; 136];
    let too = |len: usize| Matrix::new(Format::Q8_0, 2, 64, &vec![0; len]).unwrap_err().to_string();
    assert!(too(135).contains("has 136 bytes, found 135"));
    assert!(too(137).contains("has 136 bytes, found 137"));
    let error = Matrix::new(Format::Q8_0, 2, 48, &bytes).unwrap_err();
    assert_eq!(error, QuantError::NotBlocks { what: "columns", len: 48 });
    let matrix = Matrix::new(Format::Q8_0, 2, 64, &bytes).unwrap();
    let packed = PackedMatrix::pack(matrix).unwrap();
    let x = QuantizedVector::zeros(64).unwrap();
    let short = QuantizedVector::zeros(32).unwrap();
    for isa in levels() {
        for weights in [Weights::from(matrix), Weights::from(&packed)] {
            let mut out = [7.0; 2];
            let mut dots = [7; 4];
            let backwards = Range { start: 2, end: 1 };
            for result in [
                weights.gemv(isa, &short, 0..2, &mut out),
                weights.gemv(isa, &x, 0..2, &mut out[..1]),
                weights.gemv(isa, &x, 1..3, &mut out),
                weights.gemv(isa, &x, 3..3, &mut []),
                weights.gemv(isa, &x, backwards.clone(), &mut []),
                weights.block_dots(isa, &short, 0..2, 0..2, &mut dots),
                weights.block_dots(isa, &x, 0..2, 1..3, &mut dots),
                weights.block_dots(isa, &x, 0..3, 0..2, &mut dots),
                weights.block_dots(isa, &x, 0..2, 0..2, &mut dots[..3]),
                weights.add_block_dots(isa, &x, 0..2, 0..2, &dots[..3], &mut out),
                weights.add_block_dots(isa, &x, 0..2, 0..2, &dots, &mut out[..1]),
                weights.add_block_dots(isa, &x, 0..2, backwards, &dots, &mut out),
            ] {
                assert!(result.is_err());
            }
            assert_eq!((out, dots), ([7.0; 2], [7; 4]), "a failed call changes nothing");
            weights.gemv(isa, &x, 0..2, &mut out).unwrap();
            assert_eq!(out, [0.0; 2]);
        }
    }
}

#[test]
fn a_matrix_without_columns_or_rows_has_products_of_zero_or_none() {
    for format in Case::FORMATS {
        let no_columns = Matrix::new(format, 3, 0, &[]).unwrap();
        let no_rows = Matrix::new(format, 0, 64, &[]).unwrap();
        for isa in levels() {
            let x = QuantizedVector::zeros(0).unwrap();
            let packed = PackedMatrix::pack(no_columns).unwrap();
            for weights in [Weights::from(no_columns), Weights::from(&packed)] {
                assert_eq!(gemv(isa, weights, &x, 0..3), [0.0; 3]);
            }
            let x = QuantizedVector::zeros(64).unwrap();
            let packed = PackedMatrix::pack(no_rows).unwrap();
            for weights in [Weights::from(no_rows), Weights::from(&packed)] {
                assert_eq!(gemv(isa, weights, &x, 0..0), [0.0; 0]);
            }
        }
    }
}

// Rows without columns may be as many as there are numbers.
#[test]
fn block_dots_of_no_columns_are_no_work_however_many_rows() {
    for format in Case::FORMATS {
        let matrix = Matrix::new(format, usize::MAX, 0, &[]).unwrap();
        let x = QuantizedVector::zeros(0).unwrap();
        for isa in levels() {
            Weights::from(matrix).block_dots(isa, &x, 0..usize::MAX, 0..0, &mut []).unwrap();
        }
    }
}

// Found by fuzzing: an empty range of rows inside of a panel, and more than one block.
#[test]
fn an_empty_range_of_rows_or_blocks_is_no_work() {
    let mut rng = Rng::new(9);
    for format in Case::FORMATS {
        let case = Case::random(format, &mut rng, (20, 3), Scales::Weights, Quants::Any);
        let packed = PackedMatrix::pack(case.matrix()).unwrap();
        for isa in levels() {
            for weights in [Weights::from(case.matrix()), Weights::from(&packed)] {
                for row in 0..=20 {
                    weights.gemv(isa, &case.x, row..row, &mut []).unwrap();
                    weights.block_dots(isa, &case.x, row..row, 0..3, &mut []).unwrap();
                    weights.add_block_dots(isa, &case.x, row..row, 0..3, &[], &mut []).unwrap();
                    let mut sums = vec![0.5; 20 - row];
                    for block in 0..=3 {
                        let (rows, none) = (row..20, block..block);
                        weights
                            .block_dots(isa, &case.x, rows.clone(), none.clone(), &mut [])
                            .unwrap();
                        weights.add_block_dots(isa, &case.x, rows, none, &[], &mut sums).unwrap();
                    }
                    assert!(sums.iter().all(|sum| *sum == 0.5), "{isa}");
                }
            }
        }
    }
}

#[test]
fn quantized_activations_of_every_kind_give_the_same_bits() {
    let mut failures = Failures::default();
    let mut rng = Rng::new(8);
    for format in Case::FORMATS {
        for values in Values::QUANTIZABLE {
            let mut case = Case::random(format, &mut rng, (16, 19), Scales::Weights, Quants::Any);
            case.x.quantize(Isa::Scalar, &values.row(&mut rng, 19 * BLOCK_LEN)).unwrap();
            compare_all(&mut failures, &format!("{format}, {values:?}"), &case, 0..16);
        }
    }
    failures.assert_none();
}

#[test]
fn the_oracle_and_this_crate_name_the_formats_alike() {
    for format in Case::FORMATS {
        assert_eq!(Case::oracle_format(format).block_bytes(), format.block_bytes());
        assert_eq!(oracle::BLOCK, BLOCK_LEN);
    }
}
