//! How fast a level multiplies and adds: the roof over kernels that memory does not bound.

use ck_isa::Isa;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::Instant;

/// Multiply-adds per nanosecond of one thread, on registers alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peaks {
    /// Of f32, fused.
    pub f32_macs_per_ns: f64,
    /// Of 8-bit integers, unsigned by signed into 32 bits, by the instructions that the level has for it.
    pub int_macs_per_ns: f64,
}

/// Independent chains: more than latency times instructions per cycle on current CPUs.
const CHAINS: usize = 12;

/// Turns of one measurement: some 100 us.
const TURNS: usize = 30_000;

impl Peaks {
    /// The peaks of a level, the best of some measurements.
    #[must_use]
    pub fn of(isa: Isa) -> Self {
        let best = |kernel: fn(Isa) -> usize| {
            let rates = (0..9).map(|_| {
                let start = Instant::now();
                let macs = kernel(isa);
                macs as f64 / start.elapsed().as_nanos() as f64
            });
            rates.fold(0.0, f64::max)
        };
        Self { f32_macs_per_ns: best(f32_macs), int_macs_per_ns: best(int_macs) }
    }
}

/// Does multiply-adds and returns how many.
fn f32_macs(isa: Isa) -> usize {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::Avx512Vnni(_) => unsafe { x86::f32_macs_512() },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::Avx2(_) => unsafe { x86::f32_macs_256() },
        _ => plain(1.0f32, 0.5, |sum, x| sum * x + x),
    }
}

/// Does multiply-adds and returns how many.
fn int_macs(isa: Isa) -> usize {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::Avx512Vnni(_) => unsafe { x86::int_macs_512() },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::Avx2(_) => unsafe { x86::int_macs_256() },
        _ => plain(1i32, 3, |sum, x| sum.wrapping_mul(x).wrapping_add(x)),
    }
}

/// Chains of four lanes for the compiler to vectorize as the target allows.
fn plain<T: Copy>(start: T, x: T, mac: impl Fn(T, T) -> T) -> usize {
    let mut sums = [[start; 4]; CHAINS];
    let x = black_box(x);
    for _ in 0..TURNS {
        for sum in sums.as_flattened_mut() {
            *sum = mac(*sum, x);
        }
    }
    black_box(sums);
    TURNS * CHAINS * 4
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{CHAINS, TURNS, black_box};
    use core::arch::x86_64::{
        _mm256_add_epi32, _mm256_fmadd_ps, _mm256_madd_epi16, _mm256_maddubs_epi16,
        _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_ps, _mm512_dpbusd_epi32, _mm512_fmadd_ps,
        _mm512_set1_epi8, _mm512_set1_ps,
    };

    #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
    pub(super) fn f32_macs_512() -> usize {
        let x = black_box(_mm512_set1_ps(0.5));
        let mut sums = [x; CHAINS];
        for _ in 0..TURNS {
            for sum in &mut sums {
                *sum = _mm512_fmadd_ps(*sum, x, x);
            }
        }
        black_box(sums);
        TURNS * CHAINS * 16
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn f32_macs_256() -> usize {
        let x = black_box(_mm256_set1_ps(0.5));
        let mut sums = [x; CHAINS];
        for _ in 0..TURNS {
            for sum in &mut sums {
                *sum = _mm256_fmadd_ps(*sum, x, x);
            }
        }
        black_box(sums);
        TURNS * CHAINS * 8
    }

    #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
    pub(super) fn int_macs_512() -> usize {
        let x = black_box(_mm512_set1_epi8(3));
        let mut sums = [x; CHAINS];
        for _ in 0..TURNS {
            for sum in &mut sums {
                *sum = _mm512_dpbusd_epi32(*sum, x, x);
            }
        }
        black_box(sums);
        TURNS * CHAINS * 64
    }

    /// Without an instruction for it: products into 16 bits, pairs into 32 bits, and the sum.
    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn int_macs_256() -> usize {
        let (x, ones) = black_box((_mm256_set1_epi8(3), _mm256_set1_epi16(1)));
        let mut sums = [ones; CHAINS];
        for _ in 0..TURNS {
            for sum in &mut sums {
                let products = _mm256_madd_epi16(_mm256_maddubs_epi16(*sum, x), ones);
                *sum = _mm256_add_epi32(*sum, products);
            }
        }
        black_box(sums);
        TURNS * CHAINS * 32
    }
}
