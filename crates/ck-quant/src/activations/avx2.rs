//! Quantizing activations with AVX2. The algorithm and its tricks are those of `avx512vnni.rs`, with eight
//! lanes instead of 16.

use super::Target;
use crate::BLOCK_LEN;
use crate::q8_0::TOO_LARGE;
use bytemuck::{must_cast_mut, must_cast_ref};
use ck_isa::load::x86::{load256, store128, store256};
use core::arch::x86_64::*;

/// Blocks that are reduced together.
const GROUP: usize = 4;

/// Lanes of a vector of `f32`.
const LANES: usize = 8;

#[target_feature(enable = "avx2,fma,f16c")]
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
#[target_feature(enable = "avx2,fma,f16c")]
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
    // The magnitudes have no sign bit, so that they compare as signed numbers too.
    let limit = _mm_set1_epi32(TOO_LARGE.to_bits() as i32);
    _mm_movemask_epi8(_mm_cmpgt_epi32(limit, largest)) == 0xffff
}

/// The bits of the largest magnitude of each of four blocks.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn group_magnitudes(values: &[[f32; BLOCK_LEN]; GROUP]) -> __m128i {
    let magnitude = |lanes: &[f32; LANES]| {
        _mm256_and_si256(load256(must_cast_ref(lanes)), _mm256_set1_epi32(0x7fff_ffff))
    };
    let block = |i: usize| {
        let quarters: &[[f32; LANES]; 4] = must_cast_ref(&values[i]);
        let [a, b, c, d] = [0, 1, 2, 3].map(|q| magnitude(&quarters[q]));
        _mm256_max_epu32(_mm256_max_epu32(a, b), _mm256_max_epu32(c, d))
    };
    // Each 128-bit half: two candidates of each of two blocks, then one of each of four.
    let two = |a, b| _mm256_max_epu32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    let (a, b) = (two(block(0), block(1)), two(block(2), block(3)));
    let four = _mm256_max_epu32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    _mm_max_epu32(_mm256_castsi256_si128(four), _mm256_extracti128_si256::<1>(four))
}

/// Writes the scales that follow from the magnitudes, and replaces these by the factors for the quants.
#[target_feature(enable = "avx2,fma,f16c")]
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
#[target_feature(enable = "avx2,fma,f16c")]
fn divide_lanes(notes: &mut [f32; LANES], scales: &mut [f32; LANES]) {
    let largest = _mm256_castsi256_ps(load256(must_cast_ref(notes)));
    let c127 = _mm256_set1_ps(127.0);
    let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_div_ps(largest, c127));
    let rounded = _mm256_cvtph_ps(halves);
    // Where there is no scale the quotient may be infinite; the mask makes it zero.
    let has_scale = _mm256_cmp_ps::<_CMP_GT_OQ>(rounded, _mm256_setzero_ps());
    let factors = _mm256_and_ps(_mm256_div_ps(c127, largest), has_scale);
    store256(must_cast_mut(scales), _mm256_castps_si256(rounded));
    store256(must_cast_mut(notes), _mm256_castps_si256(factors));
}

/// The quants and corrections of four blocks.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn quantize_group(
    values: &[[f32; BLOCK_LEN]; GROUP],
    factors: &[f32; GROUP],
    quants: &mut [[i8; BLOCK_LEN]; GROUP],
    corrections: &mut [i32; GROUP],
) {
    // Within each 128-bit half the packs leave four bytes of every quarter block, one after the other.
    let order = _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0);
    let mut block = |i: usize| {
        let quarters: &[[f32; LANES]; 4] = must_cast_ref(&values[i]);
        let factor = _mm256_set1_ps(factors[i]);
        let [a, b, c, d] = [0, 1, 2, 3].map(|q: usize| {
            let values = _mm256_castsi256_ps(load256(must_cast_ref(&quarters[q])));
            _mm256_cvtps_epi32(_mm256_mul_ps(values, factor))
        });
        let packed = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        let packed = _mm256_permutevar8x32_epi32(packed, order);
        store256(must_cast_mut(&mut quants[i]), packed);
        let pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), packed);
        _mm256_madd_epi16(pairs, _mm256_set1_epi16(-128))
    };
    let (first, second) =
        (_mm256_hadd_epi32(block(0), block(1)), _mm256_hadd_epi32(block(2), block(3)));
    let four = _mm256_hadd_epi32(first, second);
    let sums = _mm_add_epi32(_mm256_castsi256_si128(four), _mm256_extracti128_si256::<1>(four));
    store128(must_cast_mut(corrections), sums);
}

/// `rest` and zeros.
fn filled_up<T: bytemuck::Pod>(rest: &[T]) -> [T; GROUP] {
    let mut all = [T::zeroed(); GROUP];
    all[..rest.len()].copy_from_slice(rest);
    all
}
