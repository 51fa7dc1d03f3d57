//! Every operation of every level of this machine against the scalar operation that it stands for.

use super::{MAX_LANES, Vectors};
use proptest::prelude::*;

/// Values at which operations differ from each other.
const SPECIAL: [f32; 18] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    -1.999,
    f32::MAX,
    f32::MIN,
    f32::MIN_POSITIVE,
    1e-45,
    -1e-45,
    65_519.996,
    65_520.0,
    -5.960_464e-8,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

fn same(what: &str, got: f32, expected: f32) {
    assert!(
        got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan()),
        "{what}: {got:e} instead of {expected:e}"
    );
}

/// A check of one level's vectors.
trait Check {
    fn check<V: Vectors>(&self, v: V);
}

/// Runs `check` on every level of this machine that has vectors.
fn on_every_level(check: &impl Check) {
    #[cfg(target_arch = "x86_64")]
    {
        let (avx2, avx512vnni) = (crate::Avx2::detect(), crate::Avx512Vnni::detect());
        println!("avx2: {}, avx512vnni: {}", avx2.is_some(), avx512vnni.is_some());
        avx2.into_iter().for_each(|token| check.check(token));
        avx512vnni.into_iter().for_each(|token| check.check(token));
    }
    #[cfg(target_arch = "aarch64")]
    {
        let neondot = crate::NeonDot::detect();
        println!("neondot: {}", neondot.is_some());
        neondot.into_iter().for_each(|token| check.check(token));
    }
}

fn lanes<V: Vectors>(v: V, a: V::F32) -> Vec<f32> {
    let mut out = vec![0.0; V::LANES];
    v.store(a, &mut out);
    out
}

/// The upper half onto the lower, until one is left.
fn by_halves(x: &[f32], combine: fn(f32, f32) -> f32) -> f32 {
    match x {
        [one] => *one,
        _ => {
            let (lower, upper) = x.split_at(x.len() / 2);
            let halved: Vec<f32> = lower.iter().zip(upper).map(|(&a, &b)| combine(a, b)).collect();
            by_halves(&halved, combine)
        }
    }
}

/// The arithmetic on the same three values in every lane but for a rotation.
struct Arithmetic([f32; 3]);

impl Check for Arithmetic {
    fn check<V: Vectors>(&self, v: V) {
        // Each lane has its own order, so that a lane that took another's input would show.
        let row = |shift: usize| -> Vec<f32> {
            (0..V::LANES).map(|lane| self.0[(lane + shift) % 3]).collect()
        };
        let (x, y, z) = (row(0), row(1), row(2));
        let (a, b, c) = (v.load(&x), v.load(&y), v.load(&z));
        let check = |what: &str, got: V::F32, expected: &dyn Fn(f32, f32, f32) -> f32| {
            for (lane, got) in lanes(v, got).into_iter().enumerate() {
                let context = format!("{what} of {:e} {:e} {:e}", x[lane], y[lane], z[lane]);
                same(&context, got, expected(x[lane], y[lane], z[lane]));
            }
        };
        check("splat", v.splat(self.0[0]), &|_, _, _| self.0[0]);
        check("add", v.add(a, b), &|a, b, _| a + b);
        check("sub", v.sub(a, b), &|a, b, _| a - b);
        check("mul", v.mul(a, b), &|a, b, _| a * b);
        check("div", v.div(a, b), &|a, b, _| a / b);
        check("fma", v.fma(a, b, c), &|a, b, c| crate::fma(a, b, c));
        check("neg_fma", v.neg_fma(a, b, c), &|a, b, c| crate::fma(-a, b, c));
        check("max", v.max(a, b), &|a, b, _| if a > b { a } else { b });
        check("min", v.min(a, b), &|a, b, _| if a < b { a } else { b });
        check("abs", v.abs(a), &|a, _, _| a.abs());
        check("copysign", v.copysign(a, b), &|a, b, _| a.copysign(b));
        same("sum_lanes", v.sum_lanes(a), by_halves(&x, |a, b| a + b));
        same("max_lanes", v.max_lanes(a), by_halves(&x, |a, b| if a > b { a } else { b }));
    }
}

#[test]
fn arithmetic_is_that_of_scalar_code_on_special_values() {
    for a in SPECIAL {
        for b in SPECIAL {
            for c in SPECIAL {
                on_every_level(&Arithmetic([a, b, c]));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn arithmetic_is_that_of_scalar_code(a: u32, b: u32, c: u32) {
        on_every_level(&Arithmetic([a, b, c].map(f32::from_bits)));
    }
}

struct PowersOfTwo;

impl Check for PowersOfTwo {
    fn check<V: Vectors>(&self, v: V) {
        for a in [0.5, 0.707, 1.0, 1.000_000_1, -1.25, 1.999_999_9, 0.0, -0.0, f32::INFINITY] {
            for n in -252i32..=254 {
                let got = lanes(v, v.mul_power_of_two(v.splat(a), v.splat(n as f32)));
                let expected = (f64::from(a) * 2f64.powi(n)) as f32;
                got.into_iter().for_each(|got| same(&format!("{a} * 2^{n}"), got, expected));
            }
        }
        let nan = v.mul_power_of_two(v.splat(f32::NAN), v.splat(f32::NAN));
        assert!(lanes(v, nan).into_iter().all(f32::is_nan));
    }
}

#[test]
fn powers_of_two_round_once() {
    on_every_level(&PowersOfTwo);
}

struct Memory;

impl Check for Memory {
    fn check<V: Vectors>(&self, v: V) {
        let n = V::LANES;
        let x: Vec<f32> = (0..3 * n).map(|i| i as f32 + 0.25).collect();
        for offset in 0..n {
            assert_eq!(lanes(v, v.load(&x[offset..])), x[offset..][..n]);
            let mut out = vec![-1.0; 3 * n];
            v.store(v.load(&x), &mut out[offset..]);
            assert_eq!(out[offset..][..n], x[..n]);
            assert!(out[..offset].iter().chain(&out[offset + n..]).all(|&y| y == -1.0));
        }
        for len in 0..=n {
            let got = lanes(v, v.load_partial(&x[1..][..len]));
            assert_eq!(got[..len], x[1..][..len]);
            assert!(got[len..].iter().all(|y| y.to_bits() == 0));
            let mut out = vec![-1.0; n + 1];
            v.store_partial(v.load(&x), &mut out[..len]);
            assert_eq!(out[..len], x[..len]);
            assert!(out[len..].iter().all(|&y| y == -1.0));
        }
        v.prefetch(x.as_ptr());
        v.prefetch(std::ptr::null::<f32>());
        let (a, b) = (v.load(&x), v.load(&x[n..]));
        let (even, odd) = v.unzip(a, b);
        let every_other = |first| (0..n).map(|i| x[2 * i + first]).collect::<Vec<_>>();
        assert_eq!((lanes(v, even), lanes(v, odd)), (every_other(0), every_other(1)));
        let (low, high) = v.zip(even, odd);
        assert_eq!((lanes(v, low), lanes(v, high)), (lanes(v, a), lanes(v, b)));
    }
}

#[test]
fn loads_and_stores_touch_what_they_say() {
    on_every_level(&Memory);
}

/// Memory that is too short.
struct TooShort;

impl Check for TooShort {
    fn check<V: Vectors>(&self, v: V) {
        let refused =
            |f: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err();
        let n = V::LANES;
        assert!(n <= MAX_LANES);
        let a = v.splat(1.0);
        assert!(refused(&|| drop(lanes(v, v.load(&[0.0; 32][..n - 1])))));
        assert!(refused(&|| drop(lanes(v, v.load_partial(&[0.0; 32][..n + 1])))));
        assert!(refused(&|| drop(lanes(v, v.load_f16(&[0; 32][..n - 1])))));
        assert!(refused(&|| drop(lanes(v, v.load_i8(&[0; 32][..n - 1])))));
        assert!(refused(&|| v.store(a, &mut [0.0; 32][..n - 1])));
        assert!(refused(&|| v.store_partial(a, &mut [0.0; 32][..n + 1])));
        assert!(refused(&|| v.store_f16(a, &mut [0; 32][..n - 1])));
    }
}

#[test]
fn memory_that_is_too_short_is_refused() {
    on_every_level(&TooShort);
}

/// The value of a `binary16` by its definition.
fn f16_value(bits: u16) -> f32 {
    let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    let magnitude = match exponent {
        0 => mantissa * 2f32.powi(-24),
        31 if mantissa == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + mantissa) * 2f32.powi(exponent - 25),
    };
    if bits >> 15 == 0 { magnitude } else { -magnitude }
}

struct Halves;

impl Check for Halves {
    fn check<V: Vectors>(&self, v: V) {
        let n = V::LANES;
        for first in (0..=u16::MAX).step_by(n) {
            let halves: Vec<u16> = (first..=u16::MAX).take(n).collect();
            let wide = v.load_f16(&halves);
            let mut back = vec![0; n];
            v.store_f16(wide, &mut back);
            for ((&half, got), back) in halves.iter().zip(lanes(v, wide)).zip(back) {
                same(&format!("{half:04x} widened"), got, f16_value(half));
                let expected = f16_value(half);
                assert!(back == half || (expected.is_nan() && f16_value(back).is_nan()));
            }
        }
        // Between every two neighbours: the middle is a tie, and one ulp decides on either side.
        for low in 0..0x7bff {
            let (below, above) = (f16_value(low), f16_value(low + 1));
            let middle = (below + above) / 2.0;
            let even = if low % 2 == 0 { low } else { low + 1 };
            for (x, expected) in
                [(middle.next_down(), low), (middle, even), (middle.next_up(), low + 1)]
            {
                for (x, expected) in [(x, expected), (-x, expected | 0x8000)] {
                    let mut got = vec![0; n];
                    v.store_f16(v.splat(x), &mut got);
                    assert_eq!(got, vec![expected; n], "{x:e}");
                }
            }
        }
        for (x, expected) in [(65_519.996, 0x7bff), (65_520.0, 0x7c00), (f32::MAX, 0x7c00)] {
            let mut got = vec![0; n];
            v.store_f16(v.splat(x), &mut got);
            assert_eq!(got, vec![expected; n], "{x:e}");
        }
    }
}

#[test]
fn every_half_is_widened_exactly_and_every_tie_rounds_to_even() {
    on_every_level(&Halves);
}

struct Bytes;

impl Check for Bytes {
    fn check<V: Vectors>(&self, v: V) {
        let bytes: Vec<i8> = (i8::MIN..=i8::MAX).collect();
        for bytes in bytes.windows(V::LANES) {
            let expected: Vec<f32> = bytes.iter().map(|&b| f32::from(b)).collect();
            assert_eq!(lanes(v, v.load_i8(bytes)), expected);
        }
    }
}

#[test]
fn bytes_are_converted_with_their_sign() {
    on_every_level(&Bytes);
}

struct Squares;

impl Check for Squares {
    fn check<V: Vectors>(&self, v: V) {
        let rows = [[1e30, -1e-30, 3.0, f32::MAX, 1e-45, -0.5, 7.7, 1.1], [1.0; 8], [-0.3; 8]];
        let (mut got, mut expected) = (v.squares(), [0.0f64; 8]);
        for row in rows {
            got = v.add_squares(got, &row);
            for (sum, x) in expected.iter_mut().zip(row) {
                *sum += f64::from(x) * f64::from(x);
            }
            assert_eq!(v.squares_to_array(got).map(f64::to_bits), expected.map(f64::to_bits));
        }
    }
}

#[test]
fn squares_are_summed_in_double_precision() {
    on_every_level(&Squares);
}
