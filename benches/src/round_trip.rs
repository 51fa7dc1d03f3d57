//! The time in which a cache line goes to another CPU and comes back: the unit in which hand-offs
//! between threads are to be judged, as it differs by a factor of five with where the CPUs sit.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// A line of its own.
#[repr(align(128))]
struct Line(AtomicU32);

/// Nanoseconds per round trip, over `trips` of them, between this thread and a fresh one.
#[must_use]
pub fn nanoseconds(trips: u32) -> f64 {
    let line = Line(AtomicU32::new(0));
    let wait_for = |value| while line.0.load(Ordering::Acquire) != value {};
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for trip in 0..=trips {
                wait_for(2 * trip + 1);
                line.0.store(2 * trip + 2, Ordering::Release);
            }
        });
        // The first trip waits for the thread to start.
        line.0.store(1, Ordering::Release);
        wait_for(2);
        let start = Instant::now();
        for trip in 1..=trips {
            line.0.store(2 * trip + 1, Ordering::Release);
            wait_for(2 * trip + 2);
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(trips)
    })
}
