//! Making and dropping pools.

#![cfg(not(loom))]

mod common;

use ck_threadpool::{BuildError, ThreadPool, WaitPolicy};
use common::HangGuard;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

#[test]
fn five_thousand_pools_come_and_go() {
    let _guard = HangGuard::seconds("5000 pools", 120);
    let runs = AtomicUsize::new(0);
    for round in 0..5000 {
        let pool = ThreadPool::new(1 + round % 4).unwrap();
        if round % 3 > 0 {
            pool.run(|_| _ = runs.fetch_add(1, Relaxed));
        }
        if round % 5 == 0 {
            pool.pause();
        }
    }
    let expected: usize = (0..5000).filter(|round| round % 3 > 0).map(|round| 1 + round % 4).sum();
    assert_eq!(runs.into_inner(), expected);
}

#[test]
fn a_pool_can_be_dropped_while_it_is_idle_paused_or_asleep() {
    let _guard = HangGuard::seconds("drop", 30);
    for wait in [0, 1, 20] {
        for paused in [false, true] {
            let pool = ThreadPool::new(3).unwrap();
            pool.run(|team| team.barrier());
            if paused {
                pool.pause();
            }
            std::thread::sleep(Duration::from_millis(wait));
            drop(pool);
        }
    }
}

#[test]
fn a_paused_pool_still_works() {
    let _guard = HangGuard::seconds("paused", 30);
    for policy in [WaitPolicy::DEFAULT, WaitPolicy::SLEEP] {
        let pool = ThreadPool::builder().threads(3).wait_policy(policy).build().unwrap();
        pool.pause();
        for _ in 0..100 {
            assert_eq!(pool.collect(|team| team.index()), [0, 1, 2]);
        }
        pool.resume();
        pool.resume();
        assert_eq!(pool.collect(|team| team.index()), [0, 1, 2]);
    }
}

#[test]
fn a_pool_may_be_used_and_dropped_by_another_thread_than_its_maker() {
    let _guard = HangGuard::seconds("moved pool", 30);
    let pool = ThreadPool::new(2).unwrap();
    pool.run(|team| team.barrier());
    std::thread::spawn(move || pool.run(|team| team.barrier())).join().unwrap();
}

#[test]
fn a_name_that_no_thread_can_have_is_an_error() {
    let error = ThreadPool::builder().threads(2).thread_name("a\0b").build().unwrap_err();
    assert!(matches!(error, BuildError::Name { at: 1, .. }), "{error}");
    assert!(error.to_string().contains("byte 1 of \"a\\0b\""), "{error}");
}
