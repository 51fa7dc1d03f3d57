//! Progress of a long job of uneven items: members take items as they come free, one thread watches.
//!
//!     cargo run --release -p ck-threadpool --example progress

use ck_threadpool::{SharedSlice, ThreadPool, WorkCounter};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const ITEMS: usize = 4_000;

/// The number of steps until the Collatz sequence from `start` reaches 1, the longest below `item`.
fn longest_sequence(item: usize) -> u32 {
    let steps = |mut n: usize| {
        let mut steps = 0;
        while n != 1 {
            n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
            steps += 1;
        }
        steps
    };
    (1..=item + 1).map(steps).max().unwrap_or(0)
}

fn main() -> Result<(), ck_threadpool::BuildError> {
    let pool = ThreadPool::new(ck_threadpool::available_cpus())?;
    let (items, done) = (WorkCounter::new(ITEMS), AtomicUsize::new(0));
    let mut longest = vec![0; pool.threads()];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while done.load(Ordering::Relaxed) < ITEMS {
                println!("{:3} %", 100 * done.load(Ordering::Relaxed) / ITEMS);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let results = SharedSlice::new(&mut longest);
        pool.run(|team| {
            let longest = results.own(team);
            while let Some(item) = items.next() {
                *longest = longest_sequence(item).max(*longest);
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
    });
    println!("the longest sequence has {} steps", longest.iter().max().expect("a member"));
    Ok(())
}
