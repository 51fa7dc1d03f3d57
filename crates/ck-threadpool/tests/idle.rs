//! Case B33, and the third and fifth pool fault of the original: what threads without work cost.
//!
//! One test, since it measures the time of the whole process.

#![cfg(all(target_os = "linux", not(loom)))]

mod common;

use ck_threadpool::ThreadPool;
use common::HangGuard;
use std::time::{Duration, Instant};

/// CPU time that a clock has counted.
fn cpu_time(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec on the stack, which the call fills.
    let status = unsafe { libc::clock_gettime(clock, &mut time) };
    assert_eq!(status, 0);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap())
}

fn process_time_over(length: Duration) -> Duration {
    let before = cpu_time(libc::CLOCK_PROCESS_CPUTIME_ID);
    std::thread::sleep(length);
    cpu_time(libc::CLOCK_PROCESS_CPUTIME_ID) - before
}

#[test]
fn workers_without_work_leave_the_cpus_alone() {
    let _guard = HangGuard::seconds("idle", 60);
    for threads in [2, 4] {
        let pool = ThreadPool::new(threads).unwrap();
        (0..100).for_each(|_| pool.run(|team| team.barrier()));
        std::thread::sleep(Duration::from_millis(200));
        let idle = process_time_over(Duration::from_secs(1));
        assert!(idle < Duration::from_millis(50), "{threads} threads: {idle:?} in an idle second");

        (0..100).for_each(|_| pool.run(|team| team.barrier()));
        pool.pause();
        std::thread::sleep(Duration::from_millis(2));
        let paused = process_time_over(Duration::from_secs(1));
        assert!(paused < Duration::from_millis(5), "{threads} threads: {paused:?} while paused");
        pool.run(|team| team.barrier());
        pool.resume();

        unused_workers_are_not_disturbed(&pool, 1);
        unused_workers_are_not_disturbed(&pool, 2);
    }
}

/// A steady stream of dispatches for `size` members costs the others less than 5 % of a CPU each.
fn unused_workers_are_not_disturbed(pool: &ThreadPool, size: usize) {
    let unused = pool.threads() - size;
    if unused == 0 {
        return;
    }
    let times = || pool.collect(|_| cpu_time(libc::CLOCK_THREAD_CPUTIME_ID)).split_off(size);
    let before = times();
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(300) {
        pool.run_on(size, |team| team.barrier());
    }
    let wall = start.elapsed();
    for (before, after) in before.iter().zip(times()) {
        let used = after - *before;
        assert!(used < wall / 20, "an unused worker used {used:?} of {wall:?}");
    }
}
