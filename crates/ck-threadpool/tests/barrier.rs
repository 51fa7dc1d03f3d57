//! Barriers inside a dispatch.

#![cfg(not(loom))]

mod common;

use ck_threadpool::{SharedSlice, ThreadPool, WaitPolicy};
use common::HangGuard;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

// Case B43: a value is not written again while slow members still read it, nor read before it is
// written.
#[test]
fn phases_do_not_overlap() {
    let _guard = HangGuard::seconds("phases", 120);
    for policy in [WaitPolicy::DEFAULT, WaitPolicy::SLEEP] {
        for threads in [2, 3, 4, 8] {
            let pool = ThreadPool::builder().threads(threads).wait_policy(policy).build().unwrap();
            let mut marks = vec![0; threads];
            let marks = SharedSlice::new(&mut marks);
            pool.run(|team| {
                for round in 1..500 {
                    *marks.own(team) = round;
                    delay(team.index() * 31 + round);
                    team.barrier();
                    assert!(marks.read(team).iter().all(|&mark| mark == round));
                    delay(team.index() * 17 + round);
                    team.barrier();
                }
            });
        }
    }
}

/// Some microseconds that differ from call to call.
fn delay(seed: usize) {
    for i in 0..(seed * 2_654_435_761) % 2000 {
        std::hint::black_box(i);
    }
}

// Kernel fault 2 of the original: threads without work returned before the barrier.
#[test]
fn members_without_work_take_part_in_every_barrier() {
    let _guard = HangGuard::seconds("members without work", 30);
    let pool = ThreadPool::new(8).unwrap();
    for len in [0, 1, 7] {
        let mut out = vec![0; len];
        let shared = SharedSlice::new(&mut out);
        pool.run(|team| {
            for _ in 0..20 {
                for (i, value) in shared.range(team).zip(shared.part(team)) {
                    *value += i;
                }
                team.barrier();
            }
        });
        assert_eq!(out, (0..len).map(|i| 20 * i).collect::<Vec<_>>());
    }
}

#[test]
fn a_barrier_that_a_member_misses_is_a_panic_and_no_hang() {
    let _guard = HangGuard::seconds("missed barriers", 60);
    for policy in [WaitPolicy::DEFAULT, WaitPolicy::SLEEP] {
        let pool = ThreadPool::builder().threads(4).wait_policy(policy).build().unwrap();
        for absent in 0..4 {
            for barriers in [0, 1, 2] {
                let call = catch_unwind(AssertUnwindSafe(|| {
                    pool.run(|team| {
                        let all = if team.index() == absent { barriers } else { 3 };
                        for _ in 0..all {
                            team.barrier();
                        }
                    });
                }));
                let payload = call.unwrap_err();
                let text = payload.downcast_ref::<&str>().copied().unwrap_or_default();
                assert!(text.contains("while others waited at a barrier"), "{text}");
                assert_eq!(pool.collect(|team| team.size()), [4; 4]);
            }
        }
    }
}

#[test]
fn a_single_piece_runs_once_between_the_phases_around_it() {
    let _guard = HangGuard::seconds("single", 30);
    let pool = ThreadPool::new(4).unwrap();
    let (before, during) = (AtomicUsize::new(0), AtomicUsize::new(0));
    pool.run(|team| {
        for round in 1..=100 {
            before.fetch_add(1, Relaxed);
            team.single(|team| {
                assert_eq!(before.load(Relaxed), round * team.size());
                during.fetch_add(1, Relaxed);
            });
            assert_eq!(during.load(Relaxed), round);
            team.barrier();
        }
    });
}

#[test]
fn thousands_of_barriers_keep_their_count() {
    let _guard = HangGuard::seconds("thousands of barriers", 60);
    let pool = ThreadPool::new(2).unwrap();
    let sum = AtomicUsize::new(0);
    for _ in 0..3 {
        pool.run(|team| {
            for _ in 0..100_000 {
                team.barrier();
            }
            sum.fetch_add(team.index(), Relaxed);
        });
    }
    assert_eq!(sum.into_inner(), 3);
}
