//! Sixteen lanes: AVX-512.

use super::{Vectors, avx2};
use crate::Avx512Vnni;
use std::arch::x86_64::*;

/// The first `len` lanes, for masked loads and stores.
#[inline(always)]
fn first_lanes(len: usize) -> __mmask16 {
    assert!(len <= 16, "expected at most 16 values, found {len}");
    // For 16 the shift would be too far for a u16.
    ((1u32 << len) - 1) as __mmask16
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn copysign(a: __m512, sign: __m512) -> __m512 {
    // Of the three inputs select, sign and a, by select: sign where it is set, else a.
    const SELECT: i32 = 0b1100_1010;
    let (select, sign) = (_mm512_set1_epi32(i32::MIN), _mm512_castps_si512(sign));
    let bits = _mm512_ternarylogic_epi32::<SELECT>(select, sign, _mm512_castps_si512(a));
    _mm512_castsi512_ps(bits)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn zip(a: __m512, b: __m512) -> (__m512, __m512) {
    // Lanes of b count from 16.
    let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    let high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    (_mm512_permutex2var_ps(a, low, b), _mm512_permutex2var_ps(a, high, b))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn unzip(a: __m512, b: __m512) -> (__m512, __m512) {
    let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    let odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    (_mm512_permutex2var_ps(a, even, b), _mm512_permutex2var_ps(a, odd, b))
}

/// Both halves.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn halves(a: __m512) -> (__m256, __m256) {
    let upper = _mm512_extractf64x4_pd::<1>(_mm512_castps_pd(a));
    (_mm512_castps512_ps256(a), _mm256_castpd_ps(upper))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn sum_lanes(a: __m512) -> f32 {
    let (lower, upper) = halves(a);
    avx2::sum_lanes(_mm256_add_ps(lower, upper))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn max_lanes(a: __m512) -> f32 {
    let (lower, upper) = halves(a);
    avx2::max_lanes(_mm256_max_ps(lower, upper))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn add_squares(sums: __m512d, x: __m256) -> __m512d {
    let x = _mm512_cvtps_pd(x);
    _mm512_fmadd_pd(x, x, sums)
}

impl Vectors for Avx512Vnni {
    type F32 = __m512;
    type Squares = __m512d;
    const LANES: usize = 16;
    const REGISTERS: usize = 32;

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> __m512 {
        assert!(from.len() >= 16, "expected 16 values, found {}", from.len());
        // SAFETY: the token proves AVX-512 F, and the assertion 16 readable values.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }

    #[inline(always)]
    fn load_partial(self, from: &[f32]) -> __m512 {
        let mask = first_lanes(from.len());
        // SAFETY: the token proves AVX-512 F; only the lanes of the mask are read, as many as there are values.
        unsafe { _mm512_maskz_loadu_ps(mask, from.as_ptr()) }
    }

    #[inline(always)]
    fn load_f16(self, from: &[u16]) -> __m512 {
        assert!(from.len() >= 16, "expected 16 values, found {}", from.len());
        // SAFETY: the token proves AVX, and the assertion 32 readable bytes.
        let halves = unsafe { _mm256_loadu_si256(from.as_ptr().cast()) };
        // Not `_mm512_cvtph_ps`, which asks for no exceptions: that form takes no operand in memory, and one in a
        // register costs a shuffle more.
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_cvt_roundph_ps::<_MM_FROUND_CUR_DIRECTION>(halves) }
    }

    #[inline(always)]
    fn load_i8(self, from: &[i8]) -> __m512 {
        assert!(from.len() >= 16, "expected 16 values, found {}", from.len());
        // SAFETY: every x86-64 has SSE2, and the assertion proves 16 readable bytes.
        let bytes = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
        // SAFETY: the token proves AVX-512 F.
        let integers = unsafe { _mm512_cvtepi8_epi32(bytes) };
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_cvtepi32_ps(integers) }
    }

    #[inline(always)]
    fn store(self, a: __m512, to: &mut [f32]) {
        assert!(to.len() >= 16, "expected 16 places, found {}", to.len());
        // SAFETY: the token proves AVX-512 F, and the assertion 16 writable values.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), a) }
    }

    #[inline(always)]
    fn store_partial(self, a: __m512, to: &mut [f32]) {
        let mask = first_lanes(to.len());
        // SAFETY: the token proves AVX-512 F; only the lanes of the mask are written, as many as there are places.
        unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), mask, a) }
    }

    #[inline(always)]
    fn store_f16(self, a: __m512, to: &mut [u16]) {
        assert!(to.len() >= 16, "expected 16 places, found {}", to.len());
        // SAFETY: the token proves AVX-512 F.
        let halves = unsafe { _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(a) };
        // SAFETY: the token proves AVX, and the assertion 32 writable bytes.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), halves) }
    }

    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_div_ps(a, b) }
    }

    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn neg_fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_fnmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_min_ps(a, b) }
    }

    #[inline(always)]
    fn abs(self, a: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_abs_ps(a) }
    }

    #[inline(always)]
    fn copysign(self, a: __m512, sign: __m512) -> __m512 {
        // SAFETY: the token proves AVX-512 F.
        unsafe { copysign(a, sign) }
    }

    #[inline(always)]
    fn mul_power_of_two(self, a: __m512, n: __m512) -> __m512 {
        // One instruction here, with the one rounding that the two factors of the scalar code have.
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_scalef_ps(a, n) }
    }

    #[inline(always)]
    fn zip(self, a: __m512, b: __m512) -> (__m512, __m512) {
        // SAFETY: the token proves AVX-512 F.
        unsafe { zip(a, b) }
    }

    #[inline(always)]
    fn unzip(self, a: __m512, b: __m512) -> (__m512, __m512) {
        // SAFETY: the token proves AVX-512 F.
        unsafe { unzip(a, b) }
    }

    #[inline(always)]
    fn sum_lanes(self, a: __m512) -> f32 {
        // SAFETY: the token proves AVX-512 F and AVX2.
        unsafe { sum_lanes(a) }
    }

    #[inline(always)]
    fn max_lanes(self, a: __m512) -> f32 {
        // SAFETY: the token proves AVX-512 F and AVX2.
        unsafe { max_lanes(a) }
    }

    #[inline(always)]
    fn prefetch<T>(self, at: *const T) {
        // SAFETY: every x86-64 has the instruction, which is a hint and faults at no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }

    #[inline(always)]
    fn squares(self) -> __m512d {
        // SAFETY: the token proves AVX-512 F.
        unsafe { _mm512_setzero_pd() }
    }

    #[inline(always)]
    fn add_squares(self, sums: __m512d, from: &[f32; 8]) -> __m512d {
        // SAFETY: the token proves AVX, and the array is 8 readable values.
        let x = unsafe { _mm256_loadu_ps(from.as_ptr()) };
        // SAFETY: the token proves AVX-512 F.
        unsafe { add_squares(sums, x) }
    }

    #[inline(always)]
    fn squares_to_array(self, sums: __m512d) -> [f64; 8] {
        let mut array = [0.0; 8];
        // SAFETY: the token proves AVX-512 F, and the array is 8 writable values.
        unsafe { _mm512_storeu_pd(array.as_mut_ptr(), sums) };
        array
    }
}
