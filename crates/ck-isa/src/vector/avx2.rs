//! Eight lanes: AVX2 with FMA and F16C.

use super::Vectors;
use crate::Avx2;
use std::arch::x86_64::*;

/// All ones in the first `len` lanes, for masked loads and stores.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn first_lanes(len: usize) -> __m256i {
    assert!(len <= 8, "expected at most 8 values, found {len}");
    _mm256_cmpgt_epi32(_mm256_set1_epi32(len as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
}

/// `-0.0` in every lane.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn sign_bits() -> __m256 {
    _mm256_set1_ps(-0.0)
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn copysign(a: __m256, sign: __m256) -> __m256 {
    let (magnitude, sign) = (_mm256_andnot_ps(sign_bits(), a), _mm256_and_ps(sign_bits(), sign));
    _mm256_or_ps(magnitude, sign)
}

/// As the scalar code: two factors that are normal numbers, the first of which cannot round.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn mul_power_of_two(a: __m256, n: __m256) -> __m256 {
    let n = _mm256_cvtps_epi32(n);
    let half = _mm256_srai_epi32::<1>(n);
    let power = |n| _mm256_slli_epi32::<23>(_mm256_add_epi32(n, _mm256_set1_epi32(127)));
    let a = _mm256_mul_ps(a, _mm256_castsi256_ps(power(half)));
    _mm256_mul_ps(a, _mm256_castsi256_ps(power(_mm256_sub_epi32(n, half))))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn zip(a: __m256, b: __m256) -> (__m256, __m256) {
    let (low, high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    (_mm256_permute2f128_ps::<0x20>(low, high), _mm256_permute2f128_ps::<0x31>(low, high))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn unzip(a: __m256, b: __m256) -> (__m256, __m256) {
    // Within each half; the middle pairs then change places.
    let (even, odd) = (_mm256_shuffle_ps::<0x88>(a, b), _mm256_shuffle_ps::<0xdd>(a, b));
    let order = |x| _mm256_castpd_ps(_mm256_permute4x64_pd::<0xd8>(_mm256_castps_pd(x)));
    (order(even), order(odd))
}

/// The upper half, the upper quarter of the lower half, and the second lane: what comes onto the others.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn sum_lanes(a: __m256) -> f32 {
    let a = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
    let a = _mm_add_ps(a, _mm_movehl_ps(a, a));
    _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)))
}

/// As [`sum_lanes`].
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn max_lanes(a: __m256) -> f32 {
    let a = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
    let a = _mm_max_ps(a, _mm_movehl_ps(a, a));
    _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a)))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn add_squares([low, high]: [__m256d; 2], x: __m256) -> [__m256d; 2] {
    let (x_low, x_high) = (_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
    let (x_low, x_high) = (_mm256_cvtps_pd(x_low), _mm256_cvtps_pd(x_high));
    [_mm256_fmadd_pd(x_low, x_low, low), _mm256_fmadd_pd(x_high, x_high, high)]
}

impl Vectors for Avx2 {
    type F32 = __m256;
    type Squares = [__m256d; 2];
    const LANES: usize = 8;
    const REGISTERS: usize = 16;

    #[inline(always)]
    fn splat(self, x: f32) -> __m256 {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_set1_ps(x) }
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> __m256 {
        assert!(from.len() >= 8, "expected 8 values, found {}", from.len());
        // SAFETY: the token proves AVX2, and the assertion 8 readable values.
        unsafe { _mm256_loadu_ps(from.as_ptr()) }
    }

    #[inline(always)]
    fn load_partial(self, from: &[f32]) -> __m256 {
        // SAFETY: the token proves AVX2.
        let mask = unsafe { first_lanes(from.len()) };
        // SAFETY: the token proves AVX2; only the lanes of the mask are read, as many as there are values.
        unsafe { _mm256_maskload_ps(from.as_ptr(), mask) }
    }

    #[inline(always)]
    fn load_f16(self, from: &[u16]) -> __m256 {
        assert!(from.len() >= 8, "expected 8 values, found {}", from.len());
        // SAFETY: the token proves AVX2, and the assertion 16 readable bytes.
        let halves = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
        // SAFETY: the token proves F16C.
        unsafe { _mm256_cvtph_ps(halves) }
    }

    #[inline(always)]
    fn load_i8(self, from: &[i8]) -> __m256 {
        assert!(from.len() >= 8, "expected 8 values, found {}", from.len());
        // SAFETY: the token proves AVX2, and the assertion 8 readable bytes.
        let bytes = unsafe { _mm_loadl_epi64(from.as_ptr().cast()) };
        // SAFETY: the token proves AVX2.
        let integers = unsafe { _mm256_cvtepi8_epi32(bytes) };
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_cvtepi32_ps(integers) }
    }

    #[inline(always)]
    fn store(self, a: __m256, to: &mut [f32]) {
        assert!(to.len() >= 8, "expected 8 places, found {}", to.len());
        // SAFETY: the token proves AVX2, and the assertion 8 writable values.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), a) }
    }

    #[inline(always)]
    fn store_partial(self, a: __m256, to: &mut [f32]) {
        // SAFETY: the token proves AVX2.
        let mask = unsafe { first_lanes(to.len()) };
        // SAFETY: the token proves AVX2; only the lanes of the mask are written, as many as there are places.
        unsafe { _mm256_maskstore_ps(to.as_mut_ptr(), mask, a) }
    }

    #[inline(always)]
    fn store_f16(self, a: __m256, to: &mut [u16]) {
        assert!(to.len() >= 8, "expected 8 places, found {}", to.len());
        // SAFETY: the token proves F16C.
        let halves = unsafe { _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(a) };
        // SAFETY: the token proves AVX2, and the assertion 16 writable bytes.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), halves) }
    }

    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_mul_ps(a, b) }
    }

    #[inline(always)]
    fn div(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_div_ps(a, b) }
    }

    #[inline(always)]
    fn fma(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: the token proves FMA.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn neg_fma(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: the token proves FMA.
        unsafe { _mm256_fnmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn max(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_max_ps(a, b) }
    }

    #[inline(always)]
    fn min(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_min_ps(a, b) }
    }

    #[inline(always)]
    fn abs(self, a: __m256) -> __m256 {
        self.copysign(a, self.splat(0.0))
    }

    #[inline(always)]
    fn copysign(self, a: __m256, sign: __m256) -> __m256 {
        // SAFETY: the token proves AVX2.
        unsafe { copysign(a, sign) }
    }

    #[inline(always)]
    fn mul_power_of_two(self, a: __m256, n: __m256) -> __m256 {
        // SAFETY: the token proves AVX2.
        unsafe { mul_power_of_two(a, n) }
    }

    #[inline(always)]
    fn zip(self, a: __m256, b: __m256) -> (__m256, __m256) {
        // SAFETY: the token proves AVX2.
        unsafe { zip(a, b) }
    }

    #[inline(always)]
    fn unzip(self, a: __m256, b: __m256) -> (__m256, __m256) {
        // SAFETY: the token proves AVX2.
        unsafe { unzip(a, b) }
    }

    #[inline(always)]
    fn sum_lanes(self, a: __m256) -> f32 {
        // SAFETY: the token proves AVX2.
        unsafe { sum_lanes(a) }
    }

    #[inline(always)]
    fn max_lanes(self, a: __m256) -> f32 {
        // SAFETY: the token proves AVX2.
        unsafe { max_lanes(a) }
    }

    #[inline(always)]
    fn prefetch<T>(self, at: *const T) {
        // SAFETY: every x86-64 has the instruction, which is a hint and faults at no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }

    #[inline(always)]
    fn squares(self) -> [__m256d; 2] {
        // SAFETY: the token proves AVX2.
        [unsafe { _mm256_setzero_pd() }; 2]
    }

    #[inline(always)]
    fn add_squares(self, sums: [__m256d; 2], from: &[f32; 8]) -> [__m256d; 2] {
        let x = self.load(from);
        // SAFETY: the token proves AVX2 and FMA.
        unsafe { add_squares(sums, x) }
    }

    #[inline(always)]
    fn squares_to_array(self, [low, high]: [__m256d; 2]) -> [f64; 8] {
        let mut sums = [0.0; 8];
        let (to_low, to_high) = sums.split_at_mut(4);
        // SAFETY: the token proves AVX2; there are 4 writable values.
        unsafe { _mm256_storeu_pd(to_low.as_mut_ptr(), low) };
        // SAFETY: the token proves AVX2; there are 4 writable values.
        unsafe { _mm256_storeu_pd(to_high.as_mut_ptr(), high) };
        sums
    }
}
