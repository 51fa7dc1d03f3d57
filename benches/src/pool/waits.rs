//! Barriers alone: many in a row, without a dispatch for each.

use super::{Case, Sampling, Session, Setup, repeat};
use ck_threadpool::ThreadPool;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Instant;

/// Barriers in one dispatch.
const IN_A_ROW: u32 = 1000;

pub(super) fn cases() -> Vec<Case> {
    let std: (&str, Setup) = ("std::sync::Barrier", std_barrier);
    let all = with_peers(vec![("ck-threadpool", ck), std]);
    let busy =
        Case { busy_host: true, ..Case::new("one barrier", 2, Sampling::Single(200), vec![std]) };
    vec![
        Case::new("one of 1000 barriers", 2, Sampling::Batch(2 * IN_A_ROW), all),
        Case::new(
            "one of 1000 barriers",
            4,
            Sampling::Batch(IN_A_ROW),
            vec![("ck-threadpool", ck), std],
        ),
        busy,
    ]
}

fn with_peers(contenders: Vec<(&'static str, Setup)>) -> Vec<(&'static str, Setup)> {
    #[cfg(feature = "peer-pools")]
    let contenders =
        [contenders, vec![("hurdles", peers::hurdles), ("spin", peers::spin)]].concat();
    contenders
}

fn ck(threads: usize) -> Session {
    let pool = ThreadPool::new(threads).expect("the system gives a few threads");
    Box::new(move |ops| {
        let dispatches = ops.div_ceil(IN_A_ROW);
        let start = Instant::now();
        for _ in 0..dispatches {
            pool.run(|team| {
                for _ in 0..IN_A_ROW {
                    team.barrier();
                }
            });
        }
        let done = f64::from(dispatches) * f64::from(IN_A_ROW);
        start.elapsed().mul_f64(f64::from(ops) / done)
    })
}

fn std_barrier(threads: usize) -> Session {
    let barrier = Barrier::new(threads);
    among(threads, Arc::new(barrier), |barrier| _ = barrier.wait())
}

/// A session of waits at a barrier together with `threads - 1` other threads, each with its own clone.
fn among<B>(threads: usize, barrier: B, wait: fn(&mut B)) -> Session
where
    B: Clone + Send + 'static,
{
    let last = Arc::new(AtomicU64::new(u64::MAX));
    for _ in 1..threads {
        let (mut barrier, last) = (barrier.clone(), Arc::clone(&last));
        std::thread::spawn(move || {
            let mut round = 0;
            while round != last.load(Ordering::Acquire) {
                wait(&mut barrier);
                round += 1;
            }
        });
    }
    let mut company = Company { barrier, wait, round: 0, last };
    repeat(move || company.meet())
}

/// The threads that wait at a barrier, until it is dropped.
struct Company<B> {
    barrier: B,
    wait: fn(&mut B),
    round: u64,
    /// The round after which the others leave.
    last: Arc<AtomicU64>,
}

impl<B> Company<B> {
    fn meet(&mut self) {
        (self.wait)(&mut self.barrier);
        self.round += 1;
    }
}

impl<B> Drop for Company<B> {
    fn drop(&mut self) {
        // The others are in this round, or about to enter it: none can have passed its end.
        self.last.store(self.round + 1, Ordering::Release);
        self.meet();
    }
}

#[cfg(feature = "peer-pools")]
mod peers {
    use super::{Arc, Session, among};

    pub(super) fn hurdles(threads: usize) -> Session {
        among(threads, ::hurdles::Barrier::new(threads), |barrier| _ = barrier.wait())
    }

    pub(super) fn spin(threads: usize) -> Session {
        among(threads, Arc::new(::spin::Barrier::new(threads)), |barrier| _ = barrier.wait())
    }
}
