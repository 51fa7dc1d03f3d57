//! A child of `fork` has no workers: its dispatches run on the caller alone, and nothing hangs.
//!
//! Test threads and forks do not mix well, so there is one test here.

#![cfg(all(unix, not(loom)))]

mod common;

use ck_threadpool::ThreadPool;
use common::HangGuard;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Runs `check` in a child process and says whether it was true there, and came back in time.
fn in_child(check: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs `check`, which only uses the pool and memory, and leaves by `_exit`.
    match unsafe { libc::fork() } {
        -1 => panic!("the system gave no child process"),
        0 => {
            let status = i32::from(!check());
            // SAFETY: ends the child without running the parent's exit handlers.
            unsafe { libc::_exit(status) }
        }
        child => wait_for(child) == Some(0),
    }
}

/// The child's exit status; `None` if it has none after five seconds, and is killed.
fn wait_for(child: libc::pid_t) -> Option<i32> {
    let start = Instant::now();
    let mut status = 0;
    while start.elapsed() < Duration::from_secs(5) {
        // SAFETY: `status` is an integer on the stack, which the call fills.
        if unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == child {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: sends a signal to the child made above, which has not been waited for yet.
    unsafe { libc::kill(child, libc::SIGKILL) };
    // SAFETY: as above.
    unsafe { libc::waitpid(child, &mut status, 0) };
    None
}

#[test]
fn a_child_process_runs_dispatches_alone() {
    let _guard = HangGuard::seconds("fork", 60);
    let pool = ThreadPool::new(4).unwrap();
    for pause in [false, true] {
        pool.run(|team| team.barrier());
        if pause {
            pool.pause();
        }
        assert!(in_child(|| {
            let runs = AtomicUsize::new(0);
            for _ in 0..100 {
                pool.run(|team| {
                    team.barrier();
                    runs.fetch_add(team.size(), Relaxed);
                });
            }
            pool.pause();
            pool.resume();
            runs.into_inner() == 100
        }));
        assert_eq!(pool.collect(|team| team.size()), [4; 4], "the parent's pool is as it was");
    }
    // A fork of a fork, and a pool that the child makes for itself.
    assert!(in_child(|| {
        let own = ThreadPool::new(2).unwrap();
        own.collect(|team| team.size()) == [2, 2] && in_child(|| own.collect(|_| ()).len() == 1)
    }));
    // A child may drop the pool, and a member may fork in the middle of a dispatch.
    let mut doomed = Some(ThreadPool::new(2).unwrap());
    assert!(in_child(|| {
        drop(doomed.take());
        true
    }));
    let forked = AtomicUsize::new(0);
    pool.run(|team| {
        if team.index() == 0 {
            assert!(in_child(|| team.try_barrier().is_err()));
            forked.store(1, Relaxed);
        }
        // None of the others is at the barrier when the child is made.
        while forked.load(Relaxed) == 0 {
            std::thread::yield_now();
        }
        team.barrier();
    });
    // A child that leaves the dispatch finds that it is alone in it, and not that all is done.
    let child = AtomicI32::new(-1);
    let forked = AtomicUsize::new(0);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        pool.run(|team| {
            if team.index() == 0 {
                // SAFETY: the child uses the pool and memory, and leaves by `_exit`.
                child.store(unsafe { libc::fork() }, Relaxed);
                forked.store(1, Relaxed);
            }
            while forked.load(Relaxed) == 0 {
                std::thread::yield_now();
            }
        });
    }));
    let child = child.into_inner();
    if child == 0 {
        // SAFETY: ends the child without running the parent's exit handlers.
        unsafe { libc::_exit(i32::from(ended.is_ok())) }
    }
    assert!(ended.is_ok(), "the parent's dispatch is as it was");
    assert_eq!(wait_for(child), Some(0), "the child's dispatch panicked");
}
