//! Cases and contenders for thread pools and barriers.
//!
//! A case is a row of the table: what is done, by how many threads. Its contenders are functions that
//! set up a [`Session`], so that no contender's threads run while another one is timed.

mod dispatch;
mod sum;
mod waits;

use std::time::Duration;

/// Does an operation so many times and says how long that took.
pub type Session = Box<dyn FnMut(u32) -> Duration>;

/// How a session is made for a number of threads.
pub type Setup = fn(usize) -> Session;

/// How a case is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// One sample is the mean over so many operations in a row.
    Batch(u32),
    /// One sample is the median of so many operations timed one by one.
    Single(u32),
}

/// One row of the table.
pub struct Case {
    /// What is done.
    pub name: &'static str,
    /// By how many threads.
    pub threads: usize,
    /// How it is sampled.
    pub sampling: Sampling,
    /// Whether as many foreign threads as there are CPUs are busy meanwhile.
    pub busy_host: bool,
    /// Who does it.
    pub contenders: Vec<(&'static str, Setup)>,
}

impl Case {
    fn new(
        name: &'static str,
        threads: usize,
        sampling: Sampling,
        contenders: Vec<(&'static str, Setup)>,
    ) -> Self {
        Self { name, threads, sampling, busy_host: false, contenders }
    }

    /// Sets the contender up and takes one sample, after one for warming up: nanoseconds.
    #[must_use]
    pub fn sample(&self, setup: Setup) -> f64 {
        let mut session = setup(self.threads);
        let mut time = |ops| session(ops).as_secs_f64() * 1e9 / f64::from(ops);
        match self.sampling {
            Sampling::Batch(ops) => {
                time(ops);
                time(ops)
            }
            Sampling::Single(ops) => {
                for _ in 0..ops.div_ceil(4) {
                    time(1);
                }
                crate::stats::median((0..ops).map(|_| time(1)).collect())
            }
        }
    }
}

/// All cases.
#[must_use]
pub fn cases() -> Vec<Case> {
    [dispatch::cases(), waits::cases(), sum::cases()].into_iter().flatten().collect()
}

/// A session that calls `op` again and again.
fn repeat(mut op: impl FnMut() + 'static) -> Session {
    Box::new(move |ops| {
        let start = std::time::Instant::now();
        for _ in 0..ops {
            op();
        }
        start.elapsed()
    })
}
