//! The pool under random use for a minute: sizes, barriers, panics, errors, pauses, gaps.
//!
//!     cargo test --release -p ck-threadpool --test stress -- --ignored
//!
//! A short run of the same is among the ordinary tests.

#![cfg(not(loom))]

mod common;

use ck_threadpool::{SharedSlice, ThreadPool, WaitPolicy};
use common::HangGuard;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

#[test]
fn random_use_for_two_seconds() {
    random_use(Duration::from_secs(2));
}

#[test]
#[ignore = "takes a minute: a step of `cargo xtask deep`"]
fn random_use_for_a_minute() {
    random_use(Duration::from_secs(60));
}

fn random_use(length: Duration) {
    let _guard = HangGuard::seconds("random use", length.as_secs() + 60);
    let pools: Vec<ThreadPool> =
        [(2, WaitPolicy::DEFAULT), (4, WaitPolicy::DEFAULT), (3, WaitPolicy::SLEEP)]
            .map(|(threads, policy)| ThreadPool::builder().threads(threads).wait_policy(policy))
            .map(|builder| builder.build().unwrap())
            .into();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for caller in 0..3 {
            let pools = &pools;
            scope.spawn(move || {
                let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ caller);
                while start.elapsed() < length {
                    let pool = &pools[random.below(pools.len())];
                    one_use(pool, &mut random);
                }
            });
        }
    });
}

/// Something that the caller can check: the sum that all members write, or who failed.
fn one_use(pool: &ThreadPool, random: &mut Random) {
    let (size, barriers) = (random.below(5), random.below(5));
    let len = random.below(200);
    match random.below(20) {
        0 => pool.pause(),
        1 => pool.resume(),
        2 => std::thread::sleep(Duration::from_micros(random.below(4000) as u64)),
        3 => {
            let (index, when) = (random.below(size.clamp(1, pool.threads())), random.below(3));
            let call = catch_unwind(AssertUnwindSafe(|| {
                pool.run_on(size, |team| {
                    for barrier in 0..3 {
                        if (team.index(), barrier) == (index, when) {
                            resume_unwind(Box::new(index));
                        }
                        team.barrier();
                    }
                });
            }));
            assert_eq!(*call.unwrap_err().downcast::<usize>().unwrap(), index);
        }
        4 => {
            let index = random.below(size.clamp(1, pool.threads()));
            let result = pool.try_run_on(size, |team| {
                if team.index() >= index {
                    return Err(team.index());
                }
                team.barrier();
                Ok(())
            });
            assert_eq!(result, Err(index));
        }
        _ => {
            let mut data = vec![0; len];
            let shared = SharedSlice::in_blocks(&mut data, 1 + random.below(9));
            pool.run_on(size, |team| {
                for round in 0..barriers {
                    shared.part(team).iter_mut().for_each(|value| *value += 1);
                    team.barrier();
                    assert!(shared.read(team).iter().all(|&value| value == 2 * round + 1));
                    team.barrier();
                    while let Some((_, block)) = shared.next_block(team) {
                        block.iter_mut().for_each(|value| *value += 1);
                    }
                    team.barrier();
                }
            });
            assert_eq!(data, vec![2 * barriers; len]);
        }
    }
}

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}
