//! Case B31: more threads than CPUs make progress at a useful pace.

#![cfg(all(target_os = "linux", not(loom)))]

mod common;

use ck_threadpool::ThreadPool;
use common::HangGuard;
use std::mem::{MaybeUninit, size_of};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Keeps the calling thread, and those that it starts later, on the first CPU that it may use.
fn stay_on_one_cpu() {
    // SAFETY: all zeros is a valid cpu_set_t, an array of integers.
    let mut set = unsafe { MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init() };
    // SAFETY: the kernel writes at most the given number of bytes, the size of the set.
    let status = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    assert_eq!(status, 0);
    // SAFETY: the index is below CPU_SETSIZE.
    let is_allowed = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &set) };
    let first = (0..libc::CPU_SETSIZE as usize).find(is_allowed).unwrap();
    // SAFETY: as above.
    let mut one = unsafe { MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init() };
    // SAFETY: the index is below CPU_SETSIZE.
    unsafe { libc::CPU_SET(first, &mut one) };
    // SAFETY: the kernel reads the given number of bytes, the size of the set.
    let status = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &one) };
    assert_eq!(status, 0);
}

#[test]
fn eight_threads_on_one_cpu_do_not_collapse() {
    let _guard = HangGuard::seconds("eight threads on one CPU", 15);
    // Both ways: a pool that knows of the one CPU, and one that was made before.
    let before = ThreadPool::new(8).unwrap();
    std::thread::spawn(move || {
        stay_on_one_cpu();
        let pool = ThreadPool::new(8).unwrap();
        assert_eq!(pool.cpus(), 1);
        for pool in [&pool, &before] {
            let runs = AtomicUsize::new(0);
            for _ in 0..1000 {
                pool.run(|team| {
                    team.barrier();
                    runs.fetch_add(1, Relaxed);
                });
            }
            assert_eq!(runs.into_inner(), 8000);
        }
    })
    .join()
    .unwrap();
}
