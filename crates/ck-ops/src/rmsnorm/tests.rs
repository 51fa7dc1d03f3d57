//! RMSNorm against the oracle, and the cases of its kind.

use super::rms_norm;
use crate::OpError;
use crate::testing::{levels, on_every_level};
use ck_testing::generate::{Placed, Rng, Values, sizes};
use ck_testing::{bounds, compare, oracle};
use proptest::prelude::*;

/// The result of every level, which is the same.
fn norm(x: &[f32], gamma: &[f32], eps: f32) -> Result<Vec<f32>, OpError> {
    on_every_level(|isa| {
        let mut out = vec![f32::NAN; x.len()];
        rms_norm(isa, x, gamma, eps, &mut out)?;
        Ok(out)
    })
}

fn ones(n: usize) -> Vec<f32> {
    vec![1.0; n]
}

/// Compares with the oracle on `x`; the result may come from elsewhere.
fn check(got: &[f32], x: &[f32], gamma: &[f32], eps: f32) -> Result<(), String> {
    let [x, gamma] = [x, gamma].map(|row| row.iter().map(|&v| f64::from(v)).collect::<Vec<_>>());
    let exact = oracle::rmsnorm(&x, &gamma, eps).map_err(|error| format!("{error:?}"))?;
    compare::check_within(got, &exact.values, &bounds::rmsnorm(&exact, &gamma, eps))
}

#[test]
fn every_width_and_kind_of_value_agrees_with_the_oracle() {
    let mut rng = Rng::new(1);
    let mut failures = compare::Failures::default();
    for kind in Values::ALL {
        for n in sizes::TAILS.chain([576, 896, 1031, 4096]).filter(|&n| n > 0) {
            let (x, gamma) = (kind.row(&mut rng, n), Values::Normal.row(&mut rng, n));
            match norm(&x, &gamma, 1e-6) {
                Ok(y) => failures.add(format_args!("{kind:?} {n}"), check(&y, &x, &gamma, 1e-6)),
                Err(error) => assert!(
                    matches!(error, OpError::MeanSquareOverflow { .. })
                        && kind == Values::FloatExtremes,
                    "{kind:?} {n}: {error}"
                ),
            }
        }
    }
    failures.assert_none();
}

#[test]
fn the_bound_sees_one_dropped_value() {
    let x = Values::Normal.row(&mut Rng::new(2), 896);
    let got = norm(&x, &ones(896), 1e-6).unwrap();
    assert_eq!(check(&got, &x, &ones(896), 1e-6), Ok(()));
    for dropped in [0, 447, 895] {
        let mut short = x.clone();
        short[dropped] = 0.0;
        let mut got = norm(&short, &ones(896), 1e-6).unwrap();
        got[dropped] = norm(&x, &ones(896), 1e-6).unwrap()[dropped];
        assert!(check(&got, &x, &ones(896), 1e-6).is_err(), "without value {dropped}");
    }
}

// Case B21.
#[test]
fn epsilon_is_the_callers() {
    let x = vec![0.001; 896];
    for (eps, expected) in [(1e-6, 0.5f64.sqrt()), (1e-5, 0.301_511_34)] {
        for y in norm(&x, &ones(896), eps).unwrap() {
            assert!((f64::from(y) - expected).abs() < 1e-7, "{y}");
        }
    }
    let zeros = vec![0.0; 896];
    assert_eq!(norm(&zeros, &ones(896), 1e-6).unwrap(), zeros);
    assert_eq!(norm(&zeros, &ones(896), 0.0), Err(OpError::ZeroMeanSquare));
    assert!(norm(&x, &ones(896), 0.0).unwrap().iter().all(|&y| (y - 1.0).abs() < 1e-6));
}

// Case B22.
#[test]
fn the_sum_of_squares_counts_every_lane_and_does_not_overflow() {
    let alternating: Vec<f32> = (0..896).map(|i| [7.0e9, -7.0e9][i % 2]).collect();
    for (i, y) in norm(&alternating, &ones(896), 1e-6).unwrap().into_iter().enumerate() {
        assert!((y - [1.0, -1.0][i % 2]).abs() < 1e-6, "{y}");
    }

    let mut last = vec![0.0; 35];
    last[34] = 35.0;
    let y = norm(&last, &ones(35), 1e-6).unwrap();
    assert!((y[34] - 5.916_08).abs() < 1e-6, "{}", y[34]);
    assert!(y[..34].iter().all(|&y| y == 0.0));

    for y in norm(&vec![1.0e18; 896], &ones(896), 1e-6).unwrap() {
        assert!((y - 1.0).abs() < 1e-6, "{y}");
    }
    assert!(matches!(
        norm(&vec![2.0e19; 896], &ones(896), 1e-6),
        Err(OpError::MeanSquareOverflow { .. })
    ));
    // A mean that is not too large by itself, only with the epsilon: the error has their sum.
    let eps = 3.0e38;
    let mean_square = f64::from(1.0e19_f32) * f64::from(1.0e19_f32) + f64::from(eps);
    assert_eq!(norm(&[1.0e19], &ones(1), eps), Err(OpError::MeanSquareOverflow { mean_square }));
}

// Fault 6 of the original: the aligned width, and gamma past its end.
#[test]
fn the_mean_divides_by_the_real_width() {
    for n in [1, 7, 8, 9, 15, 17, 33, 897] {
        let y = norm(&vec![2.0; n], &ones(n), 0.0).unwrap();
        assert!(y.iter().all(|&y| y == 1.0), "width {n}: {y:?}");
        for gamma in [n - 1, n + 1] {
            assert_eq!(
                norm(&vec![2.0; n], &ones(gamma), 0.0),
                Err(OpError::Length { what: "rms norm gamma", expected: n, found: gamma })
            );
        }
    }
}

// Fault 8 of the original: NaN and infinity vanish.
#[test]
fn non_finite_input_is_named_and_leaves_the_output_alone() {
    let good = [1.0f32; 20];
    for (bad, isa) in Values::NON_FINITE
        .into_iter()
        .flat_map(|bad| levels().into_iter().map(move |isa| (bad, isa)))
    {
        let mut out = [7.0f32; 20];
        for index in [0, 8, 19] {
            let mut x = good;
            x[index] = bad;
            for (what, result) in [
                ("rms norm input", rms_norm(isa, &x, &good, 1e-6, &mut out)),
                ("rms norm gamma", rms_norm(isa, &good, &x, 1e-6, &mut out)),
            ] {
                let error = result.unwrap_err();
                let OpError::NonFinite { what: w, index: i, value } = error else {
                    panic!("{error}")
                };
                assert_eq!((w, i, value.to_bits()), (what, index, bad.to_bits()));
            }
        }
        let result = rms_norm(isa, &good, &good, bad, &mut out);
        assert!(matches!(result, Err(OpError::Epsilon { .. })));
        assert!(rms_norm(isa, &good[..19], &good[..19], 0.0, &mut out).is_err());
        assert_eq!(out, [7.0; 20]);
    }
    assert_eq!(norm(&good, &good, -1.0), Err(OpError::Epsilon { eps: -1.0 }));
    assert!(matches!(norm(&[], &[], 0.0), Err(OpError::Zero { .. })));
}

#[test]
fn rows_anywhere_in_memory_give_the_same_bits_and_nothing_beside_them_is_written() {
    let mut rng = Rng::new(3);
    for n in [1, 7, 8, 15, 16, 17, 31, 64, 100] {
        let (x, gamma) = (Values::Normal.row(&mut rng, n), Values::Normal.row(&mut rng, n));
        let expected = norm(&x, &gamma, 1e-6).unwrap();
        for (isa, offset) in levels().into_iter().flat_map(|isa| (0..16).map(move |o| (isa, 4 * o)))
        {
            let placed = [&x, &gamma, &x].map(|row| Placed::new(row, offset, f32::NAN));
            let [x, gamma, mut out] = placed;
            rms_norm(isa, x.as_slice(), gamma.as_slice(), 1e-6, out.as_mut_slice()).unwrap();
            compare::assert_bits_eq(&format!("{isa}, {n} at {offset}"), out.as_slice(), &expected);
            out.assert_guards();
        }
    }
}

proptest! {
    #[test]
    fn agrees_with_the_oracle(
        values in prop::collection::vec((-1e3f32..1e3, -4f32..4.0), 1..300),
        exponent in -60i32..50,
        eps in 0f32..1e-3,
    ) {
        let x: Vec<f32> = values.iter().map(|v| v.0 * 2f32.powi(exponent)).collect();
        let gamma: Vec<f32> = values.iter().map(|v| v.1).collect();
        match norm(&x, &gamma, eps) {
            Ok(y) => prop_assert_eq!(check(&y, &x, &gamma, eps), Ok(())),
            Err(error) => prop_assert_eq!(error, OpError::ZeroMeanSquare),
        }
    }
}

/// An order that changes in scalar code and in every level alike stays within the bound.
#[test]
fn the_scale_comes_before_gamma() {
    // The squares are 680 in all, 85 in the mean: 1 / sqrt(85 + 15).
    let x = [3.0, -5.0, 7.0, 9.0, -1.0, 11.0, 13.0, -15.0];
    let gamma = [0.1, 0.3, 0.7, 1.1, 1.3, 1.9, 3.3, 7.7];
    let in_order = |x: f32, gamma: f32| x * 0.1 * gamma;
    let right: Vec<f32> = x.iter().zip(gamma).map(|(x, gamma)| in_order(*x, gamma)).collect();
    let other: Vec<f32> = x.iter().zip(gamma).map(|(x, gamma)| x * (0.1 * gamma)).collect();
    assert_ne!(right, other, "these numbers show the order");
    compare::assert_bits_eq("y", &norm(&x, &gamma, 15.0).unwrap(), &right);
}

// In f64 the order of the sum hardly ever shows in an f32 result, so these numbers are made for it: the large square is
// halfway between two f32, where any rest at all rounds the mean up, and a rest below half a unit of its f64 vanishes.
#[test]
fn the_squares_are_summed_in_eight_parts_by_halves() {
    const LARGE: f32 = 4097.0; // squared it has 25 bits, the last of them set, and a unit of 2^-28 in f64
    const SMALL: f32 = 1.25 / 32768.0; // squared it is 0.39 of that unit: two of them are kept if they meet first
    const N: usize = 32;
    let down = (LARGE * LARGE) / N as f32;
    assert!(f64::from(down) < f64::from(LARGE).powi(2) / N as f64, "the tie goes down");
    let [lost, kept] = [down, down.next_up()].map(|mean| LARGE * (1.0 / mean.sqrt()));
    assert_ne!(lost, kept, "these numbers show the order");
    let is_kept = |large: usize, small: [usize; 2]| {
        let mut x = [0.0; N];
        x[large] = LARGE;
        small.iter().for_each(|&small| x[small] = SMALL);
        let y = norm(&x, &ones(N), 0.0).unwrap()[large];
        assert!(y == lost || y == kept, "{large} {small:?}: {y:e}");
        y == kept
    };
    // Parts of 0 to 7, of which 0 has the large square: ((0 4) (2 6)) ((1 5) (3 7)).
    for one in 1..8 {
        for other in one + 1..8 {
            let meet_first = (one, other) == (2, 6) || (one % 2 == 1 && other % 2 == 1);
            assert_eq!(is_kept(8, [one, 16 + other]), meet_first, "parts {one} and {other}");
        }
    }
    // Within a part in order.
    assert!(is_kept(24, [0, 16]), "both before the large one");
    assert!(!is_kept(8, [0, 24]) && !is_kept(0, [8, 16]), "one of them and both after it");
}
