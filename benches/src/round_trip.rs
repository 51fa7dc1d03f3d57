//! The time in which a cache line goes to another CPU and comes back: the unit in which hand-offs
//! between threads are to be judged, as it differs by a factor of five with where the CPUs sit.

use ck_threadpool::ThreadPool;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// A line of its own.
#[repr(align(128))]
struct Line(AtomicU32);

/// Dispatches before the measurement: the members of a pool that were put on one CPU part in them.
const WARM_UP: usize = 100;

/// Nanoseconds per round trip, over `trips` of them, between this thread and the worker of a fresh pool.
///
/// # Panics
///
/// If the system refuses a thread.
#[must_use]
pub fn nanoseconds(trips: u32) -> f64 {
    let line = Line(AtomicU32::new(0));
    let wait_for = |value| while line.0.load(Ordering::Acquire) != value {};
    let pool = ThreadPool::new(2).expect("the system gives a thread");
    for _ in 0..WARM_UP {
        pool.run(|_| ());
    }
    let times = pool.collect(|team| {
        team.barrier();
        let start = Instant::now();
        for trip in 0..trips {
            if team.index() == 0 {
                line.0.store(2 * trip + 1, Ordering::Release);
                wait_for(2 * trip + 2);
            } else {
                wait_for(2 * trip + 1);
                line.0.store(2 * trip + 2, Ordering::Release);
            }
        }
        start.elapsed()
    });
    times[0].as_secs_f64() * 1e9 / f64::from(trips)
}
