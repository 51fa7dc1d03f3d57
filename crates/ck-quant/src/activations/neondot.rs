//! Quantizing activations with NEON. The algorithm is that of `avx512vnni.rs`; a reduction over lanes is one
//! instruction here, so every block is done by itself.

use super::Target;
use crate::BLOCK_LEN;
use crate::q8_0::TOO_LARGE;
use bytemuck::{must_cast_mut, must_cast_ref};
use ck_isa::load::aarch64::{load128, store128};
use core::arch::aarch64::*;
use half::f16;

#[target_feature(enable = "neon,dotprod")]
pub(super) fn quantize(values: &[[f32; BLOCK_LEN]], target: Target<'_>) -> bool {
    let mut largest = 0;
    for (values, note) in values.iter().zip(&mut *target.notes) {
        let magnitude = block_magnitude(values);
        largest = largest.max(magnitude);
        *note = f32::from_bits(magnitude);
    }
    if largest >= TOO_LARGE.to_bits() {
        return false;
    }
    let notes = target.notes.iter().zip(target.scales);
    let target = target.quants.iter_mut().zip(target.corrections).zip(notes);
    for (values, ((quants, correction), (amax, scale))) in values.iter().zip(target) {
        let stored = f16::from_f32(amax / 127.0);
        *scale = stored.to_f32();
        let factor = if stored == f16::ZERO { 0.0 } else { 127.0 / amax };
        *correction = -128 * quantize_block(values, factor, quants);
    }
    true
}

/// The bits of the largest magnitude of a block: bits without the sign grow with the number.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn block_magnitude(values: &[f32; BLOCK_LEN]) -> u32 {
    let parts: &[[u8; 16]; 8] = must_cast_ref(values);
    let magnitude = |i: usize| {
        let bits = vreinterpretq_u32_u8(load128(&parts[i]));
        vandq_u32(bits, vdupq_n_u32(0x7fff_ffff))
    };
    let two = |i: usize| vmaxq_u32(magnitude(i), magnitude(i + 1));
    vmaxvq_u32(vmaxq_u32(vmaxq_u32(two(0), two(2)), vmaxq_u32(two(4), two(6))))
}

/// Writes a block's quants and returns their sum.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn quantize_block(values: &[f32; BLOCK_LEN], factor: f32, quants: &mut [i8; BLOCK_LEN]) -> i32 {
    let parts: &[[[u8; 16]; 4]; 2] = must_cast_ref(values);
    let halves: &mut [[u8; 16]; 2] = must_cast_mut(quants);
    let mut sum = 0;
    for (parts, half) in parts.iter().zip(halves) {
        let rounded = |i: usize| {
            let values = vreinterpretq_f32_u8(load128(&parts[i]));
            vqmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(values, factor)))
        };
        let lower = vqmovn_s16(vcombine_s16(rounded(0), rounded(1)));
        let upper = vqmovn_s16(vcombine_s16(rounded(2), rounded(3)));
        let bytes = vcombine_s8(lower, upper);
        store128(half, vreinterpretq_u8_s8(bytes));
        sum += i32::from(vaddlvq_s8(bytes));
    }
    sum
}
