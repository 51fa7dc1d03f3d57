//! Loads, stores and prefetches as safe functions, for kernels written with intrinsics.
//!
//! The intrinsics for memory take raw pointers. Here they take a reference to an array of exactly as many
//! bytes as the vector has, at any alignment, which is all the proof that they need; with `bytemuck`'s
//! `must_cast_ref` any plain array of that size is one. Kernels then need no `unsafe` of their own.

#![allow(
    clippy::missing_safety_doc,
    reason = "the functions are safe where the feature of their attribute is enabled, and ask for nothing else"
)]

#[cfg(target_arch = "aarch64")]
pub mod aarch64;
#[cfg(target_arch = "x86_64")]
pub mod x86;

/// Asks for the cache line at `address` to be fetched into every level of the cache.
///
/// Any address will do, also one that is not mapped: this is a hint that reads nothing. On targets other
/// than x86-64 and AArch64 it does nothing.
#[inline(always)]
pub fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of every x86-64 CPU, and PREFETCHT0 on an address that cannot be read does
    // nothing (Intel SDM, volume 2, PREFETCHh): the address needs no validity.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: PRFM is a hint of the base instruction set and never faults (Arm ARM, C6.2, PRFM); it
    // changes no register, no flag and no memory, as the options say.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

/// As [`prefetch`], but into the second level of the cache and those behind it.
///
/// What streams from memory at full speed needs more lines on their way than the first level can wait for.
#[inline(always)]
pub fn prefetch_far(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in `prefetch`, with PREFETCHT1.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T1 }>(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as in `prefetch`.
    unsafe {
        core::arch::asm!("prfm pldl2keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}
