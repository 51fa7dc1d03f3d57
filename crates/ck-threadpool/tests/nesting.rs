//! Case B35 and the fourth pool fault: dispatches from inside a dispatch, and from several threads.

#![cfg(not(loom))]

mod common;

use ck_threadpool::ThreadPool;
use common::HangGuard;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[test]
fn a_dispatch_inside_a_dispatch_runs_on_that_member_alone() {
    let _guard = HangGuard::seconds("nested dispatch", 10);
    for threads in [1, 2, 4] {
        let pool = ThreadPool::new(threads).unwrap();
        let (outer, inner) = (AtomicUsize::new(0), AtomicUsize::new(0));
        for _ in 0..100 {
            pool.run(|team| {
                outer.fetch_add(1, Relaxed);
                let here = std::thread::current().id();
                pool.run(|inner_team| {
                    assert_eq!((inner_team.index(), inner_team.size()), (0, 1));
                    assert_eq!(std::thread::current().id(), here);
                    inner_team.barrier();
                    inner.fetch_add(1, Relaxed);
                });
                team.barrier();
            });
        }
        assert_eq!(outer.into_inner(), 100 * threads);
        assert_eq!(inner.into_inner(), 100 * threads);
    }
}

#[test]
fn pausing_resuming_and_dropping_a_share_inside_a_dispatch_do_not_hang() {
    let _guard = HangGuard::seconds("pause inside a dispatch", 10);
    for threads in [1, 2, 4] {
        let pool = Arc::new(ThreadPool::new(threads).unwrap());
        for _ in 0..20 {
            let done = AtomicUsize::new(0);
            let share = Arc::clone(&pool);
            pool.run(|team| {
                drop(Arc::clone(&share));
                pool.pause();
                team.barrier();
                if team.index() == team.size() - 1 {
                    pool.resume();
                }
                done.fetch_add(1, Relaxed);
            });
            assert_eq!(done.into_inner(), threads);
        }
    }
}

#[test]
fn pools_that_call_each_other_in_a_circle_do_not_hang() {
    let _guard = HangGuard::seconds("pools in a circle", 30);
    let (a, b) = (ThreadPool::new(2).unwrap(), ThreadPool::new(2).unwrap());
    let innermost = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (first, second) in [(&a, &b), (&b, &a)] {
            let innermost = &innermost;
            scope.spawn(move || {
                for _ in 0..1000 {
                    first.run(|_| {
                        second.run(|_| {
                            first.run(|team| {
                                assert_eq!(team.size(), 1);
                                innermost.fetch_add(1, Relaxed);
                            });
                        });
                    });
                }
            });
        }
    });
    assert!(innermost.into_inner() >= 2 * 1000 * 2);
}

// The fourth pool fault of the original: two callers on one pool lost executions.
#[test]
fn dispatches_from_several_threads_take_turns_and_none_is_lost() {
    let _guard = HangGuard::seconds("several callers", 60);
    let pool = ThreadPool::new(3).unwrap();
    let total = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for caller in 0..4 {
            let (pool, total) = (&pool, &total);
            scope.spawn(move || {
                for dispatch in 0..2000 {
                    let size = 1 + (caller + dispatch) % 3;
                    let runs = AtomicUsize::new(0);
                    pool.run_on(size, |team| {
                        runs.fetch_add(1, Relaxed);
                        team.barrier();
                    });
                    assert_eq!(runs.load(Relaxed), size);
                    total.fetch_add(1, Relaxed);
                }
            });
        }
    });
    assert_eq!(total.into_inner(), 8000);
}
