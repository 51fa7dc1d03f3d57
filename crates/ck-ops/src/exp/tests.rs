//! The exponential and the tangent against `f64`, in ulps.

use super::{EXP_ULPS, TANH_ULPS, exp, tanh, wide};
use crate::testing::levels;
use ck_isa::{Isa, Vectors};
use ck_testing::run::all_or_few;
use std::ops::Range;

/// The distance of `got` from `exact` in units of the last place of `exact` as an f32.
fn ulps(got: f32, exact: f64) -> f64 {
    let magnitude = exact.abs().max(f64::from(f32::MIN_POSITIVE));
    let exponent = ((magnitude.to_bits() >> 52) as i32) - 1023;
    (f64::from(got) - exact).abs() / 2f64.powi(exponent - 23)
}

/// The worst error of `function` in ulps over every `step`-th pattern of `bits`, with both signs, and where.
fn worst(
    bits: Range<u32>,
    step: usize,
    function: fn(f32) -> f32,
    exact: fn(f64) -> f64,
) -> (f64, f32) {
    let mut worst = (0.0, 0.0);
    for x in bits.step_by(step).flat_map(|bits| [f32::from_bits(bits), -f32::from_bits(bits)]) {
        let truth = exact(f64::from(x));
        let got = function(x);
        if x.is_nan() {
            assert!(got.is_nan(), "of NaN: {got}");
        } else if truth.abs() > f64::from(f32::MAX) {
            // Beyond the range; within an ulp of f32::MAX either answer is a rounding.
            assert!(got == f32::INFINITY || ulps(got, truth) < 1.0, "of {x:e}: {got:e}");
        } else {
            let error = ulps(got, truth);
            if error.is_nan() || error > worst.0 {
                worst = (error, x);
            }
        }
    }
    worst
}

/// Every pattern, by a prime stride, so that all low bits of the mantissa occur.
#[test]
fn exp_and_tanh_are_within_their_bounds() {
    let stride = all_or_few(1009, 10_007);
    let (error, x) = worst(0..1 << 31, stride, exp, libm::exp);
    assert!(error <= EXP_ULPS, "exp: {error} ulp at {x:e}");
    let (error, x) = worst(0..1 << 31, stride, tanh, libm::tanh);
    assert!(error <= TANH_ULPS, "tanh: {error} ulp at {x:e}");
}

/// Patterns of the magnitudes from 2^-26 to 105: all for which `exp` is anything but 1, zero and infinite.
const EXP_IS_NOT_TRIVIAL: Range<u32> = 0x3280_0000..0x42d2_0000;

#[test]
#[ignore = "half a billion inputs: a minute"]
fn exp_is_within_its_bound_for_every_input() {
    let (error, x) = worst(EXP_IS_NOT_TRIVIAL, 1, exp, libm::exp);
    println!("exp: {error} ulp at {x:e}");
    assert!(error <= EXP_ULPS);
}

/// Patterns of the magnitudes from 2^-14, below which `tanh(x)` is within a sixteenth of an ulp of `x`, to 10.
const TANH_IS_NOT_TRIVIAL: Range<u32> = 0x3880_0000..0x4120_0000;

#[test]
#[ignore = "an eighth of a billion inputs: a minute"]
fn tanh_is_within_its_bound_for_every_input() {
    let (error, x) = worst(TANH_IS_NOT_TRIVIAL, 1, tanh, libm::tanh);
    println!("tanh: {error} ulp at {x:e}");
    assert!(error <= TANH_ULPS);
}

#[test]
fn exp_of_special_values() {
    let smallest = f32::from_bits(1);
    for (x, expected) in [
        (0.0, 1.0),
        (-0.0, 1.0),
        (smallest, 1.0),
        (-smallest, 1.0),
        (f32::INFINITY, f32::INFINITY),
        (f32::NEG_INFINITY, 0.0),
        (f32::MAX, f32::INFINITY),
        (f32::MIN, 0.0),
        (88.722_84, f32::INFINITY),
        (-103.973, 0.0),
        (-103.971, smallest),
        (-103.278_93, smallest),
        (-104.0, 0.0),
    ] {
        assert_eq!(exp(x).to_bits(), f32::to_bits(expected), "exp({x:e}) = {:e}", exp(x));
    }
    assert!(exp(88.722_83).is_finite());
    assert!(exp(f32::NAN).is_nan() && exp(-f32::NAN).is_nan());
}

#[test]
fn tanh_of_special_values() {
    let smallest = f32::from_bits(1);
    for (x, expected) in
        [(0.0, 0.0), (smallest, smallest), (f32::INFINITY, 1.0), (f32::MAX, 1.0), (20.0, 1.0)]
    {
        assert_eq!(tanh(x).to_bits(), f32::to_bits(expected), "tanh({x:e})");
        assert_eq!(tanh(-x).to_bits(), f32::to_bits(-expected), "tanh(-{x:e})");
    }
    assert!(tanh(f32::NAN).is_nan());
}

#[test]
fn the_ulp_measure_sees_one_bit() {
    let next = f32::from_bits(1f32.to_bits() + 1);
    assert_eq!(ulps(next, 1.0), 1.0);
    assert_eq!(ulps(f32::from_bits(3), f64::from(f32::from_bits(1))), 2.0);
}

/// Every `step`-th pattern, with both signs, in vectors.
fn check_vectors<V: Vectors>(v: V, step: usize) {
    let mut got = vec![0.0; V::LANES];
    let patterns: Vec<u32> = (0..1 << 31).step_by(step).collect();
    for patterns in patterns.chunks_exact(V::LANES) {
        for sign in [0, 1 << 31] {
            let x: Vec<f32> = patterns.iter().map(|bits| f32::from_bits(bits | sign)).collect();
            for (wide, scalar) in [
                (wide::exp(v, v.load(&x)), exp as fn(f32) -> f32),
                (wide::tanh(v, v.load(&x)), tanh),
            ] {
                v.store(wide, &mut got);
                for (&got, &x) in got.iter().zip(&x) {
                    let expected = scalar(x);
                    let same = got.to_bits() == expected.to_bits();
                    assert!(same || (got.is_nan() && expected.is_nan()), "{x:e}: {got:e}");
                }
            }
        }
    }
}

#[test]
fn vectors_give_the_bits_of_the_scalar_code() {
    let stride = all_or_few(3001, 30_011);
    for isa in levels() {
        match isa {
            Isa::Scalar => (),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(token) => check_vectors(token, stride),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni(token) => check_vectors(token, stride),
            #[cfg(target_arch = "aarch64")]
            Isa::NeonDot(token) => check_vectors(token, stride),
        }
    }
}
