//! How fast attention is, beside the fastest that the same vectors can multiply and add, and beside plain reading of as
//! much memory: `cargo run --release -p ck-ops --example attention_speed [positions [words]]`. Without words, one model on
//! the fastest level of this CPU, which takes seconds. With words, the lines that contain every one of them, whichever the
//! model and the level: `attention_speed 4096 avx2 f16 streaming`.
//!
//! One thread. *Hot* is one cache again and again, in the CPU's caches as far as it fits; *streaming* goes through 256 MiB
//! of caches in turn. What is read plainly lies in slices of the same size, and so in the same pages. A multiply-add counts
//! as two operations, and only those of the two products are counted: `4 * head_dim` per query head and position.

use ck_isa::{Isa, Vectors};
use ck_ops::{AttendScratch, Attention, CacheElement, KvCache, NewPosition, Q8_0, flash_decode};
use ck_pages::ZeroedSlice;
use half::f16;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Query heads, KV heads, head dimension.
const SHAPES: [(&str, usize, usize, usize); 4] = [
    ("Qwen2-0.5B", 14, 2, 64),
    ("Llama-3.2-1B", 32, 8, 64),
    ("Llama-3-8B", 32, 8, 128),
    ("32 on 32", 32, 32, 128),
];

/// Bytes of caches that are gone through in turn.
const STREAMED: usize = 256 << 20;

fn main() -> Result<(), String> {
    let positions = match std::env::args().nth(1) {
        None => 4096,
        Some(n) => n.parse().map_err(|_| format!("expected a number of positions, found {n:?}"))?,
    };
    let mut words: Vec<String> = std::env::args().skip(2).collect();
    if words.is_empty() {
        words = vec![Isa::detect().to_string(), SHAPES[0].0.to_string()];
    }
    println!("{positions} positions, 1 thread");
    let mut measured = 0;
    for isa in Isa::available() {
        let peak = multiply_adds_per_ns(isa) * 2.0;
        println!("{isa}: {peak:.1} GFLOP/s from registers");
        for (name, heads, kv_heads, head_dim) in SHAPES {
            let attention = Attention::new(heads, kv_heads, head_dim).expect("a real shape");
            for heat in ["hot", "streaming"] {
                let case = Case { isa, name, heat, attention: &attention, positions, peak };
                for (element, block_bytes) in [("f32", 128), ("f16", 64), ("q8_0", 34)] {
                    let line = format!("{isa} {name} {element} {heat}");
                    if !words.iter().all(|word| line.contains(word)) {
                        continue;
                    }
                    measured += 1;
                    match element {
                        "f32" => case.measure::<f32>(element, block_bytes),
                        "f16" => case.measure::<f16>(element, block_bytes),
                        _ => case.measure::<Q8_0>(element, block_bytes),
                    }
                }
            }
        }
    }
    if measured == 0 { Err(format!("no line has all of the words {words:?}")) } else { Ok(()) }
}

/// What is measured.
struct Case<'a> {
    isa: Isa,
    name: &'a str,
    heat: &'a str,
    attention: &'a Attention,
    positions: usize,
    peak: f64,
}

impl Case<'_> {
    /// Measures a cache of elements of which 32 take `block_bytes`.
    fn measure<E: CacheElement>(&self, element: &str, block_bytes: usize) {
        let &Self { isa, attention, positions, .. } = self;
        let (n_heads, head_dim) = (attention.n_heads(), attention.head_dim());
        let bytes = 2 * positions * attention.n_kv_heads() * head_dim / 32 * block_bytes;
        let copies = if self.heat == "hot" { 1 } else { STREAMED.div_ceil(bytes) };
        let caches: Vec<KvCache<E>> = (0..copies).map(|_| self.cache()).collect();
        let q = wave(n_heads * head_dim, 0.73);
        let mut scratch = AttendScratch::new(attention).expect("memory");
        let mut out = vec![0.0; q.len()];
        let ns = median_ns(copies, |copy| {
            let cache = &caches[copy];
            flash_decode(isa, attention, cache, None, black_box(&q), &mut scratch, &mut out)
                .expect("finite scores");
        });
        drop(caches);
        let read = bytes as f64 / read_ns(isa, bytes, copies);
        let per_position = ns / (n_heads * positions) as f64;
        let rate = 4.0 * head_dim as f64 / per_position;
        println!(
            "  {:12} {:4} {:9} {:8.1} us {per_position:6.2} ns per head and position {rate:6.1} GFLOP/s, {:3.0} % of \
             the registers' rate; cache {:5.1} MB at {:5.1} GB/s, plain reading {read:5.1} GB/s",
            self.name,
            element,
            self.heat,
            ns / 1e3,
            100.0 * rate / self.peak,
            bytes as f64 / 1e6,
            bytes as f64 / ns,
        );
    }

    /// A full cache.
    fn cache<E: CacheElement>(&self) -> KvCache<E> {
        let &Self { isa, attention, positions, .. } = self;
        let mut cache = KvCache::<E>::with_capacity(attention.shape(), positions).expect("memory");
        let mut new = NewPosition::new(attention.shape()).expect("memory");
        let rows = wave(attention.n_kv_heads() * attention.head_dim(), 0.37);
        new.set(isa, &rows, &rows).expect("finite rows");
        (0..positions).for_each(|_| cache.append(&new).expect("room"));
        cache
    }
}

fn wave(n: usize, step: f32) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * step).sin()).collect()
}

/// The median of many calls within some tenths of a second and more, each with the next copy.
fn median_ns(copies: usize, mut call: impl FnMut(usize)) -> f64 {
    (0..copies).for_each(&mut call);
    let start = Instant::now();
    let mut times = Vec::new();
    while times.len() < copies.max(9) || start.elapsed() < Duration::from_millis(200) {
        let before = Instant::now();
        call(times.len() % copies);
        times.push(before.elapsed());
    }
    times.sort_unstable();
    times[times.len() / 2].as_nanos() as f64
}

/// The time to read so many bytes, from whatever cache or memory they fit, into registers.
fn read_ns(isa: Isa, bytes: usize, copies: usize) -> f64 {
    let copies: Vec<ZeroedSlice<f32>> = (0..copies)
        .map(|_| {
            let mut values = ZeroedSlice::new(bytes / size_of::<f32>()).expect("memory");
            values.fill(1.0);
            values
        })
        .collect();
    median_ns(copies.len(), |copy| match isa {
        Isa::Scalar => {
            black_box(copies[copy].iter().fold(0, |bits, x| bits | x.to_bits()));
        }
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the features that the function names.
        Isa::Avx2(token) => unsafe { avx2_read(token, &copies[copy]) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the features that the function names.
        Isa::Avx512Vnni(token) => unsafe { avx512vnni_read(token, &copies[copy]) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the token proves the features that the function names.
        Isa::NeonDot(token) => unsafe { neondot_read(token, &copies[copy]) },
    })
}

/// Multiply-adds of single lanes per nanosecond, without memory.
fn multiply_adds_per_ns(isa: Isa) -> f64 {
    const STEPS: usize = 100_000;
    let lanes = match isa {
        Isa::Scalar => 1,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2(_) => 8,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512Vnni(_) => 16,
        #[cfg(target_arch = "aarch64")]
        Isa::NeonDot(_) => 4,
    };
    let ns = median_ns(1, |_| match isa {
        Isa::Scalar => scalar_loop(STEPS),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the features that the function names.
        Isa::Avx2(token) => unsafe { avx2_loop(token, STEPS) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the features that the function names.
        Isa::Avx512Vnni(token) => unsafe { avx512vnni_loop(token, STEPS) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the token proves the features that the function names.
        Isa::NeonDot(token) => unsafe { neondot_loop(token, STEPS) },
    });
    (STEPS * CHAINS * lanes) as f64 / ns
}

/// Independent sums: enough for two multiply-adds a cycle of up to six cycles each, within 16 registers.
const CHAINS: usize = 12;

fn scalar_loop(steps: usize) {
    let mut sums = [0.0f32; CHAINS];
    for _ in 0..steps {
        let x = black_box(1.000_001);
        for sum in &mut sums {
            *sum = ck_isa::fma(x, x, *sum);
        }
    }
    black_box(sums);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn avx2_loop(token: ck_isa::Avx2, steps: usize) {
    vector_loop(token, steps);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn avx512vnni_loop(token: ck_isa::Avx512Vnni, steps: usize) {
    vector_loop(token, steps);
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon,dotprod")]
fn neondot_loop(token: ck_isa::NeonDot, steps: usize) {
    vector_loop(token, steps);
}

#[inline(always)]
fn vector_loop<V: Vectors>(v: V, steps: usize) {
    let x = v.splat(black_box(1.000_001));
    let mut sums = [v.splat(black_box(0.0)); CHAINS];
    for _ in 0..steps {
        for sum in &mut sums {
            *sum = v.fma(x, *sum, x);
        }
    }
    for sum in sums {
        let mut lanes = [0.0; ck_isa::MAX_LANES];
        v.store(sum, &mut lanes);
        black_box(lanes);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn avx2_read(token: ck_isa::Avx2, values: &[f32]) {
    vector_read(token, values);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn avx512vnni_read(token: ck_isa::Avx512Vnni, values: &[f32]) {
    vector_read(token, values);
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon,dotprod")]
fn neondot_read(token: ck_isa::NeonDot, values: &[f32]) {
    vector_read(token, values);
}

#[inline(always)]
fn vector_read<V: Vectors>(v: V, values: &[f32]) {
    let mut sums = [v.splat(0.0); 8];
    for values in values.chunks_exact(8 * V::LANES) {
        for (sum, values) in sums.iter_mut().zip(values.chunks_exact(V::LANES)) {
            *sum = v.max(*sum, v.load(values));
        }
    }
    for sum in sums {
        let mut lanes = [0.0; ck_isa::MAX_LANES];
        v.store(sum, &mut lanes);
        black_box(lanes);
    }
}
