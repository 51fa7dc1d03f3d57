//! Dispatches: empty, with barriers, after a gap, with more threads than CPUs.

use super::{Case, Sampling, Session, Setup, repeat};
use ck_threadpool::{ThreadPool, WaitPolicy};
use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

pub(super) fn cases() -> Vec<Case> {
    let empty = with_peers(vec![
        ("ck-threadpool", ck_empty),
        ("rayon broadcast", rayon_empty),
        ("rayon scope", rayon_scope),
        ("std::thread::scope", std_scope),
    ]);
    let one_barrier: Vec<(&str, Setup)> = vec![
        ("ck-threadpool", |threads| ck(threads, 1)),
        ("rayon broadcast + std Barrier", |threads| rayon_broadcast(threads, 1)),
    ];
    let eight_barriers: Vec<(&str, Setup)> = vec![
        ("ck-threadpool", |threads| ck(threads, 8)),
        ("rayon broadcast + std Barrier", |threads| rayon_broadcast(threads, 8)),
    ];
    let busy = Case {
        busy_host: true,
        ..Case::new("dispatch, 1 barrier", 2, Sampling::Single(200), one_barrier.clone())
    };
    vec![
        Case::new("empty dispatch", 1, Sampling::Batch(10_000), one_thread(&empty)),
        Case::new("empty dispatch", 2, Sampling::Batch(2_000), empty.clone()),
        Case::new("empty dispatch", 4, Sampling::Single(100), no_spinners(&empty)),
        Case::new("dispatch, 4 captured references", 2, Sampling::Batch(2_000), captures()),
        Case::new("dispatch, 1 barrier", 2, Sampling::Batch(2_000), one_barrier.clone()),
        Case::new("dispatch, 8 barriers", 2, Sampling::Batch(1_000), eight_barriers),
        Case::new("dispatch, 1 barrier", 4, Sampling::Single(100), one_barrier.clone()),
        Case::new("dispatch, 1 barrier", 8, Sampling::Single(100), one_barrier),
        busy,
        Case::new("empty dispatch after 1 ms", 2, Sampling::Single(40), after::<1>()),
        Case::new("empty dispatch after 10 ms", 2, Sampling::Single(20), after::<10>()),
    ]
}

/// The peers' pools, where they are built in.
fn with_peers(contenders: Vec<(&'static str, Setup)>) -> Vec<(&'static str, Setup)> {
    #[cfg(feature = "peer-pools")]
    let contenders = [
        contenders,
        vec![
            ("fork_union for_threads", peers::fork_union),
            ("candle-core barrier_pool", peers::candle),
        ],
    ]
    .concat();
    contenders
}

/// A closure that refers to what is on the caller's stack, as every real one does.
fn captures() -> Vec<(&'static str, Setup)> {
    let contenders: Vec<(&str, Setup)> =
        vec![("ck-threadpool", ck_captures), ("rayon broadcast", rayon_captures)];
    #[cfg(feature = "peer-pools")]
    let contenders = [
        contenders,
        vec![
            ("fork_union for_threads", peers::fork_union_captures),
            ("candle-core barrier_pool", peers::candle_captures),
        ],
    ]
    .concat();
    contenders
}

/// Those that can be had with one thread.
fn one_thread(contenders: &[(&'static str, Setup)]) -> Vec<(&'static str, Setup)> {
    contenders.iter().copied().filter(|(name, _)| !name.starts_with("candle")).collect()
}

/// Those that do not take milliseconds a dispatch with more threads than CPUs, or have no more
/// threads than CPUs at all.
fn no_spinners(contenders: &[(&'static str, Setup)]) -> Vec<(&'static str, Setup)> {
    let slow = |name: &str| name.starts_with("fork_union") || name.starts_with("candle");
    contenders.iter().copied().filter(|(name, _)| !slow(name)).collect()
}

fn ck_pool(threads: usize) -> ThreadPool {
    ThreadPool::new(threads).expect("the system gives a few threads")
}

fn ck_empty(threads: usize) -> Session {
    let pool = ck_pool(threads);
    repeat(move || pool.run(|team| _ = black_box(team.index())))
}

fn ck_captures(threads: usize) -> Session {
    let pool = ck_pool(threads);
    let numbers = captured();
    repeat(move || {
        let [a, b, c, d] = &numbers;
        pool.run(|team| _ = black_box(a + b + c + d + team.index()));
    })
}

/// Values that a closure refers to one by one, as the inputs and outputs of a real one.
fn captured() -> [usize; 4] {
    black_box([1, 2, 3, 4])
}

fn ck(threads: usize, barriers: usize) -> Session {
    let pool = ck_pool(threads);
    repeat(move || {
        pool.run(|team| {
            for _ in 0..barriers {
                team.barrier();
            }
            black_box(team.index());
        });
    })
}

fn ck_sleeping(threads: usize) -> Session {
    let policy = WaitPolicy::SLEEP;
    let pool = ThreadPool::builder().threads(threads).wait_policy(policy).build();
    let pool = pool.expect("the system gives a few threads");
    repeat(move || pool.run(|team| _ = black_box(team.index())))
}

fn rayon_pool(threads: usize) -> rayon::ThreadPool {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("the system gives a few threads")
}

fn rayon_empty(threads: usize) -> Session {
    let pool = rayon_pool(threads);
    repeat(move || _ = pool.broadcast(|context| _ = black_box(context.index())))
}

fn rayon_captures(threads: usize) -> Session {
    let pool = rayon_pool(threads);
    let numbers = captured();
    repeat(move || {
        let [a, b, c, d] = &numbers;
        pool.broadcast(|context| _ = black_box(a + b + c + d + context.index()));
    })
}

fn rayon_broadcast(threads: usize, barriers: usize) -> Session {
    let pool = rayon_pool(threads);
    let barrier = Barrier::new(threads);
    repeat(move || {
        pool.broadcast(|context| {
            for _ in 0..barriers {
                barrier.wait();
            }
            black_box(context.index());
        });
    })
}

fn rayon_scope(threads: usize) -> Session {
    let pool = rayon_pool(threads);
    repeat(move || {
        pool.scope(|scope| {
            for index in 0..threads {
                scope.spawn(move |_| _ = black_box(index));
            }
        });
    })
}

fn std_scope(threads: usize) -> Session {
    repeat(move || {
        std::thread::scope(|scope| {
            for index in 1..threads {
                scope.spawn(move || black_box(index));
            }
        });
    })
}

/// Those that dispatch after so many milliseconds without work.
fn after<const MILLIS: u64>() -> Vec<(&'static str, Setup)> {
    vec![
        ("ck-threadpool", |threads| gap::<MILLIS>(ck_empty(threads))),
        ("ck-threadpool, never polls", |threads| gap::<MILLIS>(ck_sleeping(threads))),
        ("rayon broadcast", |threads| gap::<MILLIS>(rayon_empty(threads))),
    ]
}

/// The session with a busy gap before every operation, which is not counted.
fn gap<const MILLIS: u64>(mut session: Session) -> Session {
    let length = Duration::from_millis(MILLIS);
    Box::new(move |ops| {
        let mut total = Duration::ZERO;
        for _ in 0..ops {
            let start = Instant::now();
            while start.elapsed() < length {
                std::hint::spin_loop();
            }
            total += session(1);
        }
        total
    })
}

#[cfg(feature = "peer-pools")]
mod peers {
    use super::{Session, black_box, captured, repeat};

    pub(super) fn fork_union(threads: usize) -> Session {
        let mut pool = fork_union::spawn(threads);
        repeat(move || {
            drop(pool.for_threads(|index, _| _ = black_box(index)));
        })
    }

    pub(super) fn fork_union_captures(threads: usize) -> Session {
        let mut pool = fork_union::spawn(threads);
        let numbers = captured();
        repeat(move || {
            let [a, b, c, d] = &numbers;
            drop(pool.for_threads(|index, _| _ = black_box(a + b + c + d + index)));
        })
    }

    pub(super) fn candle_captures(_threads: usize) -> Session {
        let pool = candle_core::utils::barrier_pool();
        let numbers = captured();
        repeat(move || {
            let [a, b, c, d] = &numbers;
            pool.execute(|index| _ = black_box(a + b + c + d + index));
        })
    }

    /// Has as many threads as the process has CPUs, whatever is asked for.
    pub(super) fn candle(_threads: usize) -> Session {
        let pool = candle_core::utils::barrier_pool();
        repeat(move || pool.execute(|index| _ = black_box(index)))
    }
}
