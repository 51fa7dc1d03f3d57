//! A small sum, 16384 numbers of 4 bytes: does a pool pay for work of a few microseconds?

use super::{Case, Sampling, Session, Setup, repeat};
use ck_threadpool::{SharedSlice, ThreadPool};
use rayon::prelude::*;
use std::hint::black_box;

const LEN: usize = 16_384;

pub(super) fn cases() -> Vec<Case> {
    let pools: Vec<(&str, Setup)> =
        vec![("ck-threadpool", ck), ("rayon par_chunks", rayon), ("one thread", serial)];
    [1, 2, 4]
        .map(|threads| Case::new("sum of 16384 f32", threads, Sampling::Batch(200), pools.clone()))
        .into()
}

fn numbers() -> Vec<f32> {
    (0..LEN).map(|i| (i % 64) as f32).collect()
}

/// The sum of `0..64` as often as it fits: every partial sum is exact, so the order does not matter.
const EXPECTED: f32 = (LEN / 64 * 2016) as f32;

/// A sum that is vectorized.
fn sum(numbers: &[f32]) -> f32 {
    let mut lanes = [0.0; 16];
    let (chunks, rest) = numbers.as_chunks::<16>();
    for chunk in chunks {
        for (lane, number) in lanes.iter_mut().zip(chunk) {
            *lane += number;
        }
    }
    lanes.iter().chain(rest).sum()
}

fn serial(_threads: usize) -> Session {
    let numbers = numbers();
    repeat(move || assert_eq!(sum(black_box(&numbers)), EXPECTED))
}

fn ck(threads: usize) -> Session {
    let pool = ThreadPool::new(threads).expect("the system gives a few threads");
    let numbers = numbers();
    let mut sums = vec![Padded(0.0); threads];
    repeat(move || {
        let shared = SharedSlice::new(&mut sums);
        pool.run(|team| shared.own(team).0 = sum(&numbers[team.split_blocks(LEN, 16)]));
        assert_eq!(sums.iter().map(|sum| sum.0).sum::<f32>(), EXPECTED);
    })
}

/// A cache line for each member's result.
#[derive(Clone, Copy)]
#[repr(align(128))]
struct Padded(f32);

fn rayon(threads: usize) -> Session {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.expect("the system gives a few threads");
    let numbers = numbers();
    repeat(move || {
        let total: f32 = pool.install(|| numbers.par_chunks(LEN.div_ceil(threads)).map(sum).sum());
        assert_eq!(total, EXPECTED);
    })
}
