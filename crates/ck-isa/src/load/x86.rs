//! Vectors of x86-64 to and from memory.

use core::arch::x86_64::{
    __m128i, __m256i, __m512i, _mm_loadu_si32, _mm_loadu_si128, _mm_storeu_si128,
    _mm256_loadu_si256, _mm256_storeu_si256, _mm512_loadu_si512, _mm512_storeu_si512,
};

/// Four bytes, and zeros above them.
#[inline]
#[target_feature(enable = "sse2")]
pub fn load32(bytes: &[u8; 4]) -> __m128i {
    // SAFETY: the reference covers the four bytes that are read, and the instruction takes any alignment.
    unsafe { _mm_loadu_si32(bytes.as_ptr()) }
}

/// 16 bytes.
#[inline]
#[target_feature(enable = "sse2")]
pub fn load128(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: the reference covers the 16 bytes that are read, and the instruction takes any alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// 32 bytes.
#[inline]
#[target_feature(enable = "avx")]
pub fn load256(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the reference covers the 32 bytes that are read, and the instruction takes any alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// 64 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn load512(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the reference covers the 64 bytes that are read, and the instruction takes any alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Writes 16 bytes.
#[inline]
#[target_feature(enable = "sse2")]
pub fn store128(bytes: &mut [u8; 16], vector: __m128i) {
    // SAFETY: the exclusive reference covers the 16 bytes that are written, at any alignment.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), vector) }
}

/// Writes 32 bytes.
#[inline]
#[target_feature(enable = "avx")]
pub fn store256(bytes: &mut [u8; 32], vector: __m256i) {
    // SAFETY: the exclusive reference covers the 32 bytes that are written, at any alignment.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), vector) }
}

/// Writes 64 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn store512(bytes: &mut [u8; 64], vector: __m512i) {
    // SAFETY: the exclusive reference covers the 64 bytes that are written, at any alignment.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), vector) }
}
