//! Dispatches: who runs them, how often, and what comes back.

#![cfg(not(loom))]

mod common;

use ck_threadpool::{ThreadPool, WaitPolicy, WorkCounter};
use common::HangGuard;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

// Case B30, and the first pool fault of the original: a dispatch for another number of members ran
// twice on a worker, or not at all.
#[test]
fn changing_the_team_size_runs_every_dispatch_once_on_each_member() {
    let _guard = HangGuard::seconds("changing the team size", 300);
    let pool = ThreadPool::new(4).unwrap();
    let runs: [AtomicUsize; 4] = Default::default();
    let total = AtomicUsize::new(0);
    let dispatches = 100_000;
    for dispatch in 0..dispatches {
        let size = [1, 4, 2, 4][dispatch % 4];
        pool.run_on(size, |team| {
            assert_eq!(team.size(), size);
            runs[team.index()].fetch_add(1, Relaxed);
            total.fetch_add(1, Relaxed);
            team.barrier();
            total.fetch_add(1, Relaxed);
        });
    }
    assert_eq!(total.into_inner(), 550_000);
    let expected = [dispatches, dispatches / 4 * 3, dispatches / 2, dispatches / 2];
    assert_eq!(runs.map(AtomicUsize::into_inner), expected);
}

// The second pool fault of the original: a partial dispatch to one thread that used the barrier hung.
#[test]
fn a_team_of_one_passes_barriers_alone() {
    let _guard = HangGuard::seconds("a team of one", 10);
    let pool = ThreadPool::new(4).unwrap();
    for members in [0, 1] {
        let caller = std::thread::current().id();
        let runs = AtomicUsize::new(0);
        pool.run_on(members, |team| {
            assert_eq!((team.index(), team.size()), (0, 1));
            assert_eq!(std::thread::current().id(), caller);
            team.barrier();
            team.single(|_| _ = runs.fetch_add(1, Relaxed));
        });
        assert_eq!(runs.into_inner(), 1);
    }
}

#[test]
fn the_caller_is_member_zero_and_every_index_is_there_once() {
    let pool = ThreadPool::new(3).unwrap();
    let caller = std::thread::current().id();
    let indices = pool.collect(|team| {
        assert_eq!(team.index() == 0, std::thread::current().id() == caller);
        team.index()
    });
    assert_eq!(indices, [0, 1, 2]);
}

#[test]
fn more_members_than_threads_are_not_to_be_had() {
    let pool = ThreadPool::new(2).unwrap();
    pool.run_on(100, |team| assert_eq!(team.size(), 2));
}

#[test]
fn numbers_of_threads_outside_the_range_are_errors_that_say_so() {
    for found in [0, 1024, usize::MAX] {
        let error = ThreadPool::new(found).unwrap_err().to_string();
        assert_eq!(error, format!("a pool has between 1 and 1023 threads, found {found}"));
    }
}

#[test]
fn more_threads_than_cpus_are_reported() {
    let pool = ThreadPool::new(ck_threadpool::available_cpus() + 1).unwrap();
    assert!(pool.threads() > pool.cpus());
    assert_eq!(ThreadPool::builder().build().unwrap().threads(), pool.cpus());
}

#[test]
fn workers_have_names_and_stacks_as_asked_for() {
    let pool = ThreadPool::builder()
        .threads(3)
        .thread_name("decode")
        .stack_size(16 << 20)
        .wait_policy(WaitPolicy::SLEEP)
        .build()
        .unwrap();
    let names = pool.collect(|team| {
        if team.index() > 0 {
            use_eight_megabytes_of_stack();
        }
        std::thread::current().name().map(str::to_owned)
    });
    assert_eq!(names[1..], [Some("decode-1".to_owned()), Some("decode-2".to_owned())]);
}

/// More than the two megabytes of a default stack; the caller's stays as it was.
#[inline(never)]
fn use_eight_megabytes_of_stack() {
    let big = std::hint::black_box([1u8; 8 << 20]);
    assert_eq!(big[big.len() / 2], 1);
}

#[test]
fn the_lowest_members_error_comes_back_whichever_was_first() {
    let _guard = HangGuard::seconds("errors", 30);
    let pool = ThreadPool::new(4).unwrap();
    for slow in 0..4 {
        for _ in 0..50 {
            let result = pool.try_run(|team| {
                if team.index() == slow {
                    std::thread::sleep(std::time::Duration::from_micros(100));
                }
                if team.index() % 2 == 1 { Err(team.index()) } else { Ok(()) }
            });
            assert_eq!(result, Err(1));
        }
    }
    assert_eq!(pool.try_run(|_| Ok::<(), usize>(())), Ok(()));
}

#[test]
fn an_error_before_a_barrier_releases_those_who_wait_there() {
    let _guard = HangGuard::seconds("an error before a barrier", 30);
    let pool = ThreadPool::new(4).unwrap();
    for failing in 0..4 {
        let after = AtomicUsize::new(0);
        let result = pool.try_run(|team| {
            if team.index() == failing {
                return Err(failing);
            }
            team.barrier();
            after.fetch_add(1, Relaxed);
            Ok(())
        });
        assert_eq!(result, Err(failing));
        assert_eq!(after.into_inner(), 0, "nobody passes a barrier that somebody missed");
        let result = pool.try_run(|team| {
            if team.index() == failing {
                return Err(format!("member {failing}"));
            }
            team.try_barrier().map_err(|interrupted| interrupted.to_string())
        });
        assert_eq!(result, Err(format!("member {failing}")));
    }
    pool.run(|team| team.barrier());
}

#[test]
fn a_team_of_one_returns_its_error() {
    let pool = ThreadPool::new(1).unwrap();
    assert_eq!(pool.try_run(|_| Err("no")), Err("no"));
}

#[test]
fn a_counter_gives_each_item_to_one_member() {
    let pool = ThreadPool::new(4).unwrap();
    let mut counter = WorkCounter::new(10_000);
    for _ in 0..3 {
        let taken: Vec<AtomicUsize> = (0..10_000).map(|_| AtomicUsize::new(0)).collect();
        pool.run(|_| {
            while let Some(item) = counter.next() {
                taken[item].fetch_add(1, Relaxed);
            }
            assert_eq!(counter.next(), None);
        });
        assert!(taken.iter().all(|count| count.load(Relaxed) == 1));
        counter.reset();
    }
}

#[test]
fn the_global_pool_can_be_sized_once_before_its_first_use() {
    let pool = ThreadPool::builder().threads(2).build_global().unwrap();
    assert!(std::ptr::eq(pool, ck_threadpool::global()));
    let error = ThreadPool::builder().threads(3).build_global().unwrap_err().to_string();
    assert_eq!(error, "the global pool exists already, with 2 threads");
    assert_eq!(ck_threadpool::global().collect(|team| team.size()), [2, 2]);
}
