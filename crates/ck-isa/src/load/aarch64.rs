//! Vectors of AArch64 to and from memory, and the instructions that `core::arch` does not offer yet.

use core::arch::aarch64::{
    float32x4_t, int8x16_t, int32x4_t, uint8x16_t, uint16x4_t, vld1q_u8, vst1q_u8,
};
use core::arch::asm;

/// 16 bytes.
#[inline]
#[target_feature(enable = "neon")]
pub fn load128(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the reference covers the 16 bytes that are read, and bytes need no alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

/// Writes 16 bytes.
#[inline]
#[target_feature(enable = "neon")]
pub fn store128(bytes: &mut [u8; 16], vector: uint8x16_t) {
    // SAFETY: the exclusive reference covers the 16 bytes that are written, and bytes need no alignment.
    unsafe { vst1q_u8(bytes.as_mut_ptr(), vector) }
}

/// `SDOT`: adds to each lane of `sum` the four products of its bytes in `a` and `b`.
#[inline]
#[target_feature(enable = "neon,dotprod")]
pub fn sdot(mut sum: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: the dot product instructions are enabled for this function; SDOT works on registers only
    // and changes none but the one named as output.
    unsafe {
        asm!(
            "sdot {sum:v}.4s, {a:v}.16b, {b:v}.16b",
            sum = inout(vreg) sum, a = in(vreg) a, b = in(vreg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}

/// `FCVTL`: four f16, given by their bits, as f32. Exact.
#[inline]
#[target_feature(enable = "neon")]
pub fn f16_to_f32(bits: uint16x4_t) -> float32x4_t {
    let wide: float32x4_t;
    // SAFETY: FCVTL belongs to NEON, which is enabled for this function; it works on registers only and
    // changes none but the one named as output.
    unsafe {
        asm!(
            "fcvtl {wide:v}.4s, {bits:v}.4h",
            wide = lateout(vreg) wide, bits = in(vreg) bits,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    wide
}
