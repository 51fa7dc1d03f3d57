//! Barriers alone: many in a row, without a dispatch for each.

use super::{Case, Sampling, Session, Setup, repeat};
use ck_threadpool::ThreadPool;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

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
        let start = Instant::now();
        for _ in 0..ops / IN_A_ROW {
            pool.run(|team| {
                for _ in 0..IN_A_ROW {
                    team.barrier();
                }
            });
        }
        start.elapsed() * ops / (ops / IN_A_ROW * IN_A_ROW)
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
    let ended = Arc::new(AtomicBool::new(false));
    let others = (1..threads).map(|_| {
        let (mut barrier, ended) = (barrier.clone(), Arc::clone(&ended));
        std::thread::spawn(move || {
            while !ended.load(Ordering::Acquire) {
                wait(&mut barrier);
            }
        })
    });
    let others = others.collect();
    let mut company = Company { barrier, wait, ended, others };
    repeat(move || company.meet())
}

/// The threads that wait at a barrier, until it is dropped.
struct Company<B> {
    barrier: B,
    wait: fn(&mut B),
    ended: Arc<AtomicBool>,
    others: Vec<std::thread::JoinHandle<()>>,
}

impl<B> Company<B> {
    fn meet(&mut self) {
        (self.wait)(&mut self.barrier);
    }
}

impl<B> Drop for Company<B> {
    fn drop(&mut self) {
        // All others are at the barrier, or on their way to it.
        while self.others.iter().any(|other| !other.is_finished()) {
            std::thread::sleep(Duration::from_micros(50));
            self.ended.store(true, Ordering::Release);
            self.meet();
        }
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
