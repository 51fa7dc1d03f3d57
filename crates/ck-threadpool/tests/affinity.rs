//! Case B39: pinned workers leave the caller's and other threads' affinity alone.
//!
//! One test, since it changes the affinity of the thread that runs it.

#![cfg(all(target_os = "linux", not(loom)))]

mod common;

use ck_threadpool::ThreadPool;
use common::HangGuard;
use std::mem::{MaybeUninit, size_of};

fn mask() -> Vec<usize> {
    // SAFETY: all zeros is a valid cpu_set_t, an array of integers.
    let mut set = unsafe { MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init() };
    // SAFETY: the kernel writes at most the given number of bytes, the size of the set.
    let status = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    assert_eq!(status, 0);
    // SAFETY: the index is below CPU_SETSIZE.
    (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

fn restrict_to(cpus: &[usize]) {
    // SAFETY: all zeros is a valid cpu_set_t, an array of integers.
    let mut set = unsafe { MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init() };
    for &cpu in cpus {
        // SAFETY: the index came from `mask`, so it is below CPU_SETSIZE.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: the kernel reads the given number of bytes, the size of the set.
    let status = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) };
    assert_eq!(status, 0);
}

#[test]
fn pinning_workers_changes_nobody_elses_affinity() {
    let _guard = HangGuard::seconds("affinity", 30);
    let all = mask();
    for outer in [&all[..], &all[..all.len().min(2)], &all[..1]] {
        restrict_to(outer);
        let pool = ThreadPool::builder().threads(4).pin_workers(true).build().unwrap();
        assert_eq!(mask(), outer, "after building");
        let masks = pool.collect(|_| mask());
        assert_eq!(masks[0], outer, "the caller inside a dispatch");
        for worker in &masks[1..] {
            assert_eq!(worker.len(), 1, "a worker is on one CPU");
            assert!(outer.contains(&worker[0]), "a worker is inside the outer mask");
        }
        assert_eq!(mask(), outer, "after a dispatch");
        assert_eq!(std::thread::spawn(mask).join().unwrap(), outer, "a new thread");
        drop(pool);
        assert_eq!(mask(), outer, "after dropping");
        restrict_to(&all);
    }
    let unpinned = ThreadPool::new(2).unwrap();
    assert_eq!(unpinned.collect(|_| mask()), [all.clone(), all]);
}
