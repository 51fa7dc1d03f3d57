//! Which code rotates a head.

#[cfg(target_arch = "aarch64")]
use super::neondot;
use super::{Pairing, scalar};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512vnni};
use ck_isa::Isa;

/// Rotates one head's first `rot_dim` elements, which are `head`; there are half as many cosines and sines.
pub(super) fn rotate(isa: Isa, pairing: Pairing, cos: &[f32], sin: &[f32], head: &mut [f32]) {
    match pairing {
        Pairing::SplitHalf => split_half(isa, cos, sin, head),
        Pairing::Interleaved => interleaved(isa, cos, sin, head),
    }
}

fn split_half(isa: Isa, cos: &[f32], sin: &[f32], head: &mut [f32]) {
    match isa {
        Isa::Scalar => scalar::rotate_split_half(cos, sin, head),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the features that the function names.
        Isa::Avx2(token) => unsafe { avx2::rotate_split_half(token, cos, sin, head) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the features that the function names.
        Isa::Avx512Vnni(token) => unsafe { avx512vnni::rotate_split_half(token, cos, sin, head) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the token proves the features that the function names.
        Isa::NeonDot(token) => unsafe { neondot::rotate_split_half(token, cos, sin, head) },
    }
}

fn interleaved(isa: Isa, cos: &[f32], sin: &[f32], head: &mut [f32]) {
    match isa {
        Isa::Scalar => scalar::rotate_interleaved(cos, sin, head),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the features that the function names.
        Isa::Avx2(token) => unsafe { avx2::rotate_interleaved(token, cos, sin, head) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the features that the function names.
        Isa::Avx512Vnni(token) => unsafe { avx512vnni::rotate_interleaved(token, cos, sin, head) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the token proves the features that the function names.
        Isa::NeonDot(token) => unsafe { neondot::rotate_interleaved(token, cos, sin, head) },
    }
}
