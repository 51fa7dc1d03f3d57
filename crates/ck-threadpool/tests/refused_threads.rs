//! A system that refuses a thread part-way: an error, and the threads that were started have ended.
//!
//! The limit holds for the whole process, so the test runs itself again in a child.

#![cfg(all(target_os = "linux", not(loom)))]

mod common;

use ck_threadpool::{BuildError, ThreadPool};
use common::HangGuard;
use std::process::Command;
use std::time::{Duration, Instant};

/// Set in the child.
const IN_CHILD: &str = "CK_REFUSE_THREADS";

/// Address space that the child may use beyond what it has. A thread asks for its stack at once.
const MORE: u64 = 1 << 30;

/// The stack of a worker: a few fit into [`MORE`].
const STACK: usize = 128 << 20;

/// The number of threads of this process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Whether this process has `expected` threads: those that were joined may be listed for a moment more.
fn soon_has_threads(expected: usize) -> bool {
    let end = Instant::now() + Duration::from_secs(10);
    while threads() != expected && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    threads() == expected
}

/// Lets this process use at most [`MORE`] bytes of address space more than it does.
fn limit_address_space() {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
    let limit = pages * 4096 + MORE;
    let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
    // SAFETY: the call reads the structure that the reference points to.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

/// What the child does.
fn build_in_little_memory() {
    let before = threads();
    limit_address_space();
    for _ in 0..3 {
        let error = ThreadPool::builder().threads(64).stack_size(STACK).build().unwrap_err();
        let BuildError::Spawn { worker, threads: 64, .. } = error else { panic!("{error}") };
        assert!((2..=8).contains(&worker), "the system refused worker {worker}");
        assert!(soon_has_threads(before), "{} threads, not {before}", threads());
    }
    let pool = ThreadPool::builder().threads(3).stack_size(STACK).build().unwrap();
    assert_eq!(pool.collect(|team| team.size()), [3; 3], "a pool that fits works");
}

#[test]
fn threads_refused_part_way_are_an_error_and_none_is_left() {
    let _guard = HangGuard::seconds("refused threads", 120);
    if std::env::var_os(IN_CHILD).is_some() {
        return build_in_little_memory();
    }
    let name = "threads_refused_part_way_are_an_error_and_none_is_left";
    let program = std::env::current_exe().unwrap();
    let child = Command::new(program)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(IN_CHILD, "1")
        // One arena for all threads: else each reserves address space of its own.
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{text}");
}

#[test]
fn a_stack_that_no_memory_holds_is_an_error() {
    let _guard = HangGuard::seconds("huge stack", 60);
    for bytes in [usize::MAX, usize::MAX - 4095, 1 << 62] {
        let error = ThreadPool::builder().threads(3).stack_size(bytes).build().unwrap_err();
        assert!(matches!(error, BuildError::Spawn { worker: 1, threads: 3, .. }), "{error}");
    }
}
