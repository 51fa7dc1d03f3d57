//! Quantizing activations with AVX-512.
//!
//! The plain algorithm, for each block of 32: `amax` is the largest magnitude; the scale is
//! `f16(amax / 127)`; a quant is `round_ties_even(x * (127 / amax))`, or 0 where the scale is 0; the correction
//! is -128 times the sum of the quants.
//!
//! 1. Magnitudes are compared as integers: the bits of a float without its sign grow with it, and those of
//!    infinity and NaN are above all others. So one maximum serves both as `amax` and as the check.
//! 2. The first pass notes every block's `amax` and writes nothing else, because a call that fails must change
//!    nothing. The values are in the first-level cache when the second pass comes.
//! 3. Four blocks are reduced together: each step of the tree then works on full vectors.
//! 4. Both divisions are done for 16 blocks at a time.
//! 5. Quants are within -127 to 127, since `x / amax` is at most 1 and the product rounds to at most 127, so
//!    the saturating packs change nothing.

use super::Target;
use crate::BLOCK_LEN;
use crate::q8_0::TOO_LARGE;
use bytemuck::{must_cast_mut, must_cast_ref};
use ck_isa::load::x86::{load512, store128, store512};
use core::arch::x86_64::*;

/// Blocks that are reduced together.
const GROUP: usize = 4;

/// Lanes of a vector of `f32`.
const LANES: usize = 16;

#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) fn quantize(values: &[[f32; BLOCK_LEN]], target: Target<'_>) -> bool {
    if !note_magnitudes(values, target.notes) {
        return false;
    }
    divide(target.notes, target.scales);
    let (groups, rest) = values.as_chunks::<GROUP>();
    let (quants, rest_quants) = target.quants.as_chunks_mut::<GROUP>();
    let (corrections, rest_corrections) = target.corrections.as_chunks_mut::<GROUP>();
    let (factors, rest_factors) = target.notes.as_chunks::<GROUP>();
    for (((values, factors), quants), corrections) in
        groups.iter().zip(factors).zip(quants).zip(corrections)
    {
        quantize_group(values, factors, quants, corrections);
    }
    if !rest.is_empty() {
        let (mut quants, mut corrections) = ([[0; BLOCK_LEN]; GROUP], [0; GROUP]);
        quantize_group(&filled_up(rest), &filled_up(rest_factors), &mut quants, &mut corrections);
        rest_quants.copy_from_slice(&quants[..rest.len()]);
        rest_corrections.copy_from_slice(&corrections[..rest.len()]);
    }
    true
}

/// Notes the largest magnitude of every block. Whether all of them are finite and not too large.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
fn note_magnitudes(values: &[[f32; BLOCK_LEN]], notes: &mut [f32]) -> bool {
    let (groups, rest) = values.as_chunks::<GROUP>();
    let (noted, rest_noted) = notes.as_chunks_mut::<GROUP>();
    let mut largest = _mm_setzero_si128();
    for (values, noted) in groups.iter().zip(noted) {
        let magnitudes = group_magnitudes(values);
        largest = _mm_max_epu32(largest, magnitudes);
        store128(must_cast_mut(noted), magnitudes);
    }
    if !rest.is_empty() {
        let magnitudes = group_magnitudes(&filled_up(rest));
        largest = _mm_max_epu32(largest, magnitudes);
        let mut noted = [0.0; GROUP];
        store128(must_cast_mut(&mut noted), magnitudes);
        rest_noted.copy_from_slice(&noted[..rest.len()]);
    }
    let limit = _mm_set1_epi32(TOO_LARGE.to_bits() as i32);
    _mm_cmplt_epu32_mask(largest, limit) == 0b1111
}

/// The bits of the largest magnitude of each of four blocks.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
fn group_magnitudes(values: &[[f32; BLOCK_LEN]; GROUP]) -> __m128i {
    let magnitude = |lanes: &[f32; LANES]| {
        _mm512_and_si512(load512(must_cast_ref(lanes)), _mm512_set1_epi32(0x7fff_ffff))
    };
    let block = |i: usize| {
        let halves: &[[f32; LANES]; 2] = must_cast_ref(&values[i]);
        _mm512_max_epu32(magnitude(&halves[0]), magnitude(&halves[1]))
    };
    // Each 128-bit quarter: two candidates of each of two blocks, then one of each of four.
    let two = |a, b| _mm512_max_epu32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let (a, b) = (two(block(0), block(1)), two(block(2), block(3)));
    let four = _mm512_max_epu32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    let half = _mm256_max_epu32(_mm512_castsi512_si256(four), _mm512_extracti64x4_epi64::<1>(four));
    _mm_max_epu32(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half))
}

/// Writes the scales that follow from the magnitudes, and replaces these by the factors for the quants.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
fn divide(notes: &mut [f32], scales: &mut [f32]) {
    let (vectors, rest) = notes.as_chunks_mut::<LANES>();
    let (scale_vectors, rest_scales) = scales.as_chunks_mut::<LANES>();
    for (notes, scales) in vectors.iter_mut().zip(scale_vectors) {
        divide_lanes(notes, scales);
    }
    if !rest.is_empty() {
        let (mut notes, mut scales) = ([1.0; LANES], [0.0; LANES]);
        notes[..rest.len()].copy_from_slice(rest);
        divide_lanes(&mut notes, &mut scales);
        rest.copy_from_slice(&notes[..rest.len()]);
        rest_scales.copy_from_slice(&scales[..rest.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
fn divide_lanes(notes: &mut [f32; LANES], scales: &mut [f32; LANES]) {
    let largest = _mm512_castsi512_ps(load512(must_cast_ref(notes)));
    let c127 = _mm512_set1_ps(127.0);
    let halves = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm512_div_ps(largest, c127));
    let has_scale = _mm256_test_epi16_mask(halves, halves);
    let factors = _mm512_maskz_div_ps(has_scale, c127, largest);
    store512(must_cast_mut(scales), _mm512_castps_si512(_mm512_cvtph_ps(halves)));
    store512(must_cast_mut(notes), _mm512_castps_si512(factors));
}

/// The quants and corrections of four blocks.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
fn quantize_group(
    values: &[[f32; BLOCK_LEN]; GROUP],
    factors: &[f32; GROUP],
    quants: &mut [[i8; BLOCK_LEN]; GROUP],
    corrections: &mut [i32; GROUP],
) {
    let block = |i: usize| {
        let halves: &[[f32; LANES]; 2] = must_cast_ref(&values[i]);
        let factor = _mm512_set1_ps(factors[i]);
        let half = |lanes: &[f32; LANES]| {
            let values = _mm512_castsi512_ps(load512(must_cast_ref(lanes)));
            _mm512_cvtps_epi32(_mm512_mul_ps(values, factor))
        };
        _mm512_packs_epi32(half(&halves[0]), half(&halves[1]))
    };
    // Within each 128-bit quarter the packs leave four bytes of every half block, one after the other.
    let order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    let pair =
        |i: usize| _mm512_permutexvar_epi32(order, _mm512_packs_epi16(block(i), block(i + 1)));
    let pairs = [pair(0), pair(2)];
    let quants: &mut [[u8; 64]; 2] = must_cast_mut(quants);
    store512(&mut quants[0], pairs[0]);
    store512(&mut quants[1], pairs[1]);
    // 128 is what a byte of all but the sign bit's value is when taken as unsigned.
    let sums =
        pairs.map(|pair| _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(-128), pair));
    let [a, b] = sums;
    let two = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let one = _mm512_add_epi32(two, _mm512_shuffle_epi32::<0b01_00_11_10>(two));
    // Quarters 0 and 1 hold blocks 0 and 2, quarters 2 and 3 hold blocks 1 and 3.
    let even = _mm512_castsi512_si256(one);
    let odd = _mm512_extracti64x4_epi64::<1>(one);
    let all = _mm256_unpacklo_epi32(even, odd);
    let sums = _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256::<1>(all));
    store128(must_cast_mut(corrections), _mm_sub_epi32(_mm_setzero_si128(), sums));
}

/// `rest` and zeros.
fn filled_up<T: bytemuck::Pod>(rest: &[T]) -> [T; GROUP] {
    let mut all = [T::zeroed(); GROUP];
    all[..rest.len()].copy_from_slice(rest);
    all
}
