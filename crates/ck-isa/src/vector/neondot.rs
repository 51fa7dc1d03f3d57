//! Four lanes: NEON.

use super::Vectors;
use crate::NeonDot;
use crate::load::aarch64::f16_to_f32;
use std::arch::aarch64::*;
use std::arch::asm;

/// Four values rounded to `binary16`, ties to even. There is no stable intrinsic for it.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn narrow(wide: float32x4_t) -> uint16x4_t {
    let halves;
    // SAFETY: FCVTN is part of NEON, which this function enables; it only reads and writes its registers.
    unsafe {
        asm!("fcvtn {0:v}.4h, {1:v}.4s", out(vreg) halves, in(vreg) wide, options(pure, nomem, nostack));
    }
    halves
}

#[inline]
#[target_feature(enable = "neon,dotprod")]
fn widen_i8(bytes: int8x8_t) -> float32x4_t {
    vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(bytes))))
}

#[inline]
#[target_feature(enable = "neon,dotprod")]
fn max(a: float32x4_t, b: float32x4_t) -> float32x4_t {
    vbslq_f32(vcgtq_f32(a, b), a, b)
}

#[inline]
#[target_feature(enable = "neon,dotprod")]
fn min(a: float32x4_t, b: float32x4_t) -> float32x4_t {
    vbslq_f32(vcltq_f32(a, b), a, b)
}

#[inline]
#[target_feature(enable = "neon,dotprod")]
fn copysign(a: float32x4_t, sign: float32x4_t) -> float32x4_t {
    vbslq_f32(vdupq_n_u32(1 << 31), sign, a)
}

/// As the scalar code: two factors that are normal numbers, the first of which cannot round.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn mul_power_of_two(a: float32x4_t, n: float32x4_t) -> float32x4_t {
    let n = vcvtq_s32_f32(n);
    let half = vshrq_n_s32::<1>(n);
    let power = |n| vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(n, vdupq_n_s32(127))));
    vmulq_f32(vmulq_f32(a, power(half)), power(vsubq_s32(n, half)))
}

#[inline]
#[target_feature(enable = "neon,dotprod")]
fn add_squares(sums: [float64x2_t; 4], low: float32x4_t, high: float32x4_t) -> [float64x2_t; 4] {
    let x = [
        vcvt_f64_f32(vget_low_f32(low)),
        vcvt_high_f64_f32(low),
        vcvt_f64_f32(vget_low_f32(high)),
        vcvt_high_f64_f32(high),
    ];
    [
        vfmaq_f64(sums[0], x[0], x[0]),
        vfmaq_f64(sums[1], x[1], x[1]),
        vfmaq_f64(sums[2], x[2], x[2]),
        vfmaq_f64(sums[3], x[3], x[3]),
    ]
}

#[inline]
#[target_feature(enable = "neon,dotprod")]
fn zip(a: float32x4_t, b: float32x4_t) -> (float32x4_t, float32x4_t) {
    (vzip1q_f32(a, b), vzip2q_f32(a, b))
}

#[inline]
#[target_feature(enable = "neon,dotprod")]
fn unzip(a: float32x4_t, b: float32x4_t) -> (float32x4_t, float32x4_t) {
    (vuzp1q_f32(a, b), vuzp2q_f32(a, b))
}

#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sum_lanes(a: float32x4_t) -> f32 {
    let pair = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    vget_lane_f32::<0>(pair) + vget_lane_f32::<1>(pair)
}

#[inline]
#[target_feature(enable = "neon,dotprod")]
fn max_lanes(a: float32x4_t) -> f32 {
    let pair = max(a, vextq_f32::<2>(a, a));
    let (a, b) = (vgetq_lane_f32::<0>(pair), vgetq_lane_f32::<1>(pair));
    if a > b { a } else { b }
}

impl Vectors for NeonDot {
    type F32 = float32x4_t;
    type Squares = [float64x2_t; 4];
    const LANES: usize = 4;
    const REGISTERS: usize = 32;

    #[inline(always)]
    fn splat(self, x: f32) -> float32x4_t {
        // SAFETY: the token proves NEON.
        unsafe { vdupq_n_f32(x) }
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> float32x4_t {
        assert!(from.len() >= 4, "expected 4 values, found {}", from.len());
        // SAFETY: the token proves NEON, and the assertion 4 readable values.
        unsafe { vld1q_f32(from.as_ptr()) }
    }

    #[inline(always)]
    fn load_partial(self, from: &[f32]) -> float32x4_t {
        assert!(from.len() <= 4, "expected at most 4 values, found {}", from.len());
        let mut values = [0.0; 4];
        values[..from.len()].copy_from_slice(from);
        self.load(&values)
    }

    #[inline(always)]
    fn load_f16(self, from: &[u16]) -> float32x4_t {
        assert!(from.len() >= 4, "expected 4 values, found {}", from.len());
        // SAFETY: the token proves NEON, and the assertion 4 readable values.
        let halves = unsafe { vld1_u16(from.as_ptr()) };
        // SAFETY: the token proves NEON.
        unsafe { f16_to_f32(halves) }
    }

    #[inline(always)]
    fn load_i8(self, from: &[i8]) -> float32x4_t {
        let [a, b, c, d] = *from.first_chunk().expect("expected 4 values");
        let bytes = [a, b, c, d, 0, 0, 0, 0];
        // SAFETY: the token proves NEON, and the array is 8 readable bytes.
        let bytes = unsafe { vld1_s8(bytes.as_ptr()) };
        // SAFETY: the token proves NEON.
        unsafe { widen_i8(bytes) }
    }

    #[inline(always)]
    fn store(self, a: float32x4_t, to: &mut [f32]) {
        assert!(to.len() >= 4, "expected 4 places, found {}", to.len());
        // SAFETY: the token proves NEON, and the assertion 4 writable values.
        unsafe { vst1q_f32(to.as_mut_ptr(), a) }
    }

    #[inline(always)]
    fn store_partial(self, a: float32x4_t, to: &mut [f32]) {
        assert!(to.len() <= 4, "expected at most 4 places, found {}", to.len());
        let mut values = [0.0; 4];
        self.store(a, &mut values);
        to.copy_from_slice(&values[..to.len()]);
    }

    #[inline(always)]
    fn store_f16(self, a: float32x4_t, to: &mut [u16]) {
        assert!(to.len() >= 4, "expected 4 places, found {}", to.len());
        // SAFETY: the token proves NEON.
        let halves = unsafe { narrow(a) };
        // SAFETY: the token proves NEON, and the assertion 4 writable values.
        unsafe { vst1_u16(to.as_mut_ptr(), halves) }
    }

    #[inline(always)]
    fn add(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: the token proves NEON.
        unsafe { vaddq_f32(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: the token proves NEON.
        unsafe { vsubq_f32(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: the token proves NEON.
        unsafe { vmulq_f32(a, b) }
    }

    #[inline(always)]
    fn div(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: the token proves NEON.
        unsafe { vdivq_f32(a, b) }
    }

    #[inline(always)]
    fn fma(self, a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        // SAFETY: the token proves NEON.
        unsafe { vfmaq_f32(c, a, b) }
    }

    #[inline(always)]
    fn neg_fma(self, a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        // SAFETY: the token proves NEON.
        unsafe { vfmsq_f32(c, a, b) }
    }

    #[inline(always)]
    fn max(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: the token proves NEON.
        unsafe { max(a, b) }
    }

    #[inline(always)]
    fn min(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: the token proves NEON.
        unsafe { min(a, b) }
    }

    #[inline(always)]
    fn abs(self, a: float32x4_t) -> float32x4_t {
        // SAFETY: the token proves NEON.
        unsafe { vabsq_f32(a) }
    }

    #[inline(always)]
    fn copysign(self, a: float32x4_t, sign: float32x4_t) -> float32x4_t {
        // SAFETY: the token proves NEON.
        unsafe { copysign(a, sign) }
    }

    #[inline(always)]
    fn mul_power_of_two(self, a: float32x4_t, n: float32x4_t) -> float32x4_t {
        // SAFETY: the token proves NEON.
        unsafe { mul_power_of_two(a, n) }
    }

    #[inline(always)]
    fn zip(self, a: float32x4_t, b: float32x4_t) -> (float32x4_t, float32x4_t) {
        // SAFETY: the token proves NEON.
        unsafe { zip(a, b) }
    }

    #[inline(always)]
    fn unzip(self, a: float32x4_t, b: float32x4_t) -> (float32x4_t, float32x4_t) {
        // SAFETY: the token proves NEON.
        unsafe { unzip(a, b) }
    }

    #[inline(always)]
    fn sum_lanes(self, a: float32x4_t) -> f32 {
        // SAFETY: the token proves NEON.
        unsafe { sum_lanes(a) }
    }

    #[inline(always)]
    fn max_lanes(self, a: float32x4_t) -> f32 {
        // SAFETY: the token proves NEON.
        unsafe { max_lanes(a) }
    }

    #[inline(always)]
    fn prefetch<T>(self, at: *const T) {
        // SAFETY: PRFM is a hint and faults at no address.
        unsafe {
            asm!("prfm pldl1keep, [{0}]", in(reg) at, options(readonly, nostack, preserves_flags));
        }
    }

    #[inline(always)]
    fn squares(self) -> [float64x2_t; 4] {
        // SAFETY: the token proves NEON.
        [unsafe { vdupq_n_f64(0.0) }; 4]
    }

    #[inline(always)]
    fn add_squares(self, sums: [float64x2_t; 4], from: &[f32; 8]) -> [float64x2_t; 4] {
        let (low, high) = (self.load(&from[..4]), self.load(&from[4..]));
        // SAFETY: the token proves NEON.
        unsafe { add_squares(sums, low, high) }
    }

    #[inline(always)]
    fn squares_to_array(self, sums: [float64x2_t; 4]) -> [f64; 8] {
        let mut array = [0.0; 8];
        for (to, sum) in array.chunks_exact_mut(2).zip(sums) {
            // SAFETY: the token proves NEON; there are 2 writable values.
            unsafe { vst1q_f64(to.as_mut_ptr(), sum) };
        }
        array
    }
}
