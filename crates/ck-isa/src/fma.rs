//! The one fused multiply-add of the scalar kernels.

/// `a * b + c` with one rounding, to nearest, ties to even.
///
/// The bits are those of the IEEE 754 operation `fusedMultiplyAdd` on every machine, for subnormal
/// results, infinities and NaN (the payload of a NaN aside) as well. Where the target has the
/// instruction statically this is that instruction. Elsewhere [`f32::mul_add`] would call the platform's
/// `fmaf`; this function works in `f64` instead, which is quicker and depends on nothing.
///
/// ```
/// // The product alone would round to 1.0, and the sum to 0.
/// let a = 1.0 + f32::EPSILON;
/// let b = 1.0 - f32::EPSILON;
/// assert_eq!(ck_isa::fma(a, b, -1.0), -f32::EPSILON * f32::EPSILON);
/// ```
#[inline(always)]
#[must_use]
pub fn fma(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
        a.mul_add(b, c)
    } else {
        fma_in_f64(a, b, c)
    }
}

/// The exact product and the exact sum in `f64`, rounded to odd, then rounded to `f32`.
///
/// A product of two `f32` has at most 48 significant bits and fits `f64` exactly. The sum is rounded to
/// 53 bits *to odd*: an inexact sum whose last bit is even is moved to its odd neighbour on the
/// side of the error. 53 is at least 24 + 2, so the second rounding sees what it needs to be the only one
/// that counts (S. Boldo, G. Melquiond, "Emulation of a FMA and correctly rounded sums: proved
/// algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008).
#[inline(always)]
fn fma_in_f64(a: f32, b: f32, c: f32) -> f32 {
    let product = f64::from(a) * f64::from(b);
    let addend = f64::from(c);
    let sum = product + addend;
    // Knuth's two-sum: `error` is exactly what `sum` lost. It is NaN when `sum` is not finite, and no
    // comparison below then holds.
    let addend_part = sum - product;
    let error = (product - (sum - addend_part)) + (addend - addend_part);
    let bits = sum.to_bits();
    let inexact = error.abs() > 0.0;
    let outward = (error > 0.0) == (sum > 0.0);
    let odd_neighbour = if outward { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    let chosen = if inexact & (bits & 1 == 0) { odd_neighbour } else { bits };
    f64::from_bits(chosen) as f32
}

#[cfg(test)]
mod tests {
    use super::{fma, fma_in_f64};
    use proptest::prelude::*;

    fn same_bits(a: f32, b: f32, c: f32) {
        let expected = a.mul_add(b, c);
        for (name, got) in [("fma", fma(a, b, c)), ("fma_in_f64", fma_in_f64(a, b, c))] {
            assert!(
                got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan()),
                "{name}({a:e}, {b:e}, {c:e}) = {got:e}, expected {expected:e}"
            );
        }
    }

    #[test]
    fn agrees_with_the_platform_on_every_pair_of_special_values() {
        let tiny = f32::from_bits(1);
        let values = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            1.0 + f32::EPSILON,
            1.0 - f32::EPSILON / 2.0,
            tiny,
            -tiny,
            f32::MIN_POSITIVE,
            f32::MIN_POSITIVE - tiny,
            f32::MAX,
            -f32::MAX,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            2f32.powi(-75),
            2f32.powi(-74) * 1.5,
            16_777_215.0,
            0.5,
        ];
        for a in values {
            for b in values {
                for c in values {
                    same_bits(a, b, c);
                }
            }
        }
    }

    #[test]
    fn rounds_once_where_two_roundings_differ() {
        // 1 + 2^-24 + 2^-54: f64 would keep the tie at 2^-24 and round it to even, the answer is above.
        let a = 1.0 + 2f32.powi(-23);
        let b = 2f32.powi(-24);
        same_bits(a, b, 1.0);
        same_bits(-a, b, 1.0);
        same_bits(2f32.powi(-27), 2f32.powi(-27), 1.0 + 2f32.powi(-23));
        assert_eq!(fma(a, b, 1.0).to_bits(), (1.0 + 2f32.powi(-23)).to_bits());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn agrees_with_the_platform_on_any_bits(a: u32, b: u32, c: u32) {
            same_bits(f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
        }

        #[test]
        fn agrees_with_the_platform_near_cancellation(a in -2f32..2.0, b in -2f32..2.0, ulps in -4i32..4) {
            let near = -(a * b);
            same_bits(a, b, f32::from_bits(near.to_bits().wrapping_add_signed(ulps)));
        }

        #[test]
        fn agrees_with_the_platform_on_subnormal_results(a in 0u32..0x0100_0000, b in 0x3000_0000u32..0x4000_0000, c in 0u32..0x0100_0000) {
            same_bits(f32::from_bits(a), f32::from_bits(b), -f32::from_bits(c));
        }
    }
}
