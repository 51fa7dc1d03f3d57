//! Model: dispatches for changing numbers of members, every one run once by each of its members.
//!
//!     RUSTFLAGS="--cfg loom" cargo test --release -p ck-threadpool --test 'loom_*'
//!
//! No thread polls in a model: every wait is a sleep, so each schedule is one of sleeping and waking.

#![cfg(loom)]

mod common_loom;

use common_loom::{Cells, model, pool};
use loom::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn each_member_runs_a_dispatch_once_whatever_the_sizes_before() {
    model(1, || {
        let pool = pool(3);
        let cells = Cells::new(3);
        let runs = AtomicUsize::new(0);
        for size in [3, 2, 3] {
            pool.run_on(size, |team| {
                assert_eq!(team.size(), size);
                runs.fetch_add(1, Ordering::Relaxed);
                cells.add_one(team.index());
            });
        }
        assert_eq!(runs.load(Ordering::Relaxed), 8);
        assert_eq!([0, 1, 2].map(|index| cells.get(index)), [3, 3, 2]);
    });
}

#[test]
fn what_workers_wrote_is_there_when_the_dispatch_returns() {
    model(2, || {
        let pool = pool(2);
        let cells = Cells::new(2);
        for _ in 0..2 {
            pool.run(|team| cells.add_one(team.index()));
            assert_eq!(cells.get(1), cells.get(0));
        }
    });
}

#[test]
fn dispatches_from_two_threads_take_turns() {
    model(2, || {
        let pool = loom::sync::Arc::new(pool(2));
        let cells = loom::sync::Arc::new(Cells::new(2));
        let other = {
            let (pool, cells) = (pool.clone(), cells.clone());
            loom::thread::spawn(move || pool.run(|team| cells.add_one(team.index())))
        };
        pool.run(|team| cells.add_one(team.index()));
        other.join().unwrap();
        assert_eq!([cells.get(0), cells.get(1)], [2, 2]);
    });
}
