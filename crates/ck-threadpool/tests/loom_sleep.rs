//! Model: pause and resume beside a dispatch; no wake-up is lost.
//!
//!     RUSTFLAGS="--cfg loom" cargo test --release -p ck-threadpool --test 'loom_*'

#![cfg(loom)]

mod common_loom;

use common_loom::{Cells, model, pool};
use loom::sync::Arc;

#[test]
fn a_dispatch_reaches_a_worker_that_is_about_to_sleep() {
    model(2, || {
        let pool = pool(2);
        let cells = Cells::new(2);
        for _ in 0..3 {
            pool.run(|team| cells.add_one(team.index()));
        }
        assert_eq!(cells.get(1), 3);
    });
}

#[test]
fn pause_and_resume_from_another_thread_lose_no_dispatch() {
    model(2, || {
        let pool = Arc::new(pool(2));
        let cells = Cells::new(2);
        let other = {
            let pool = pool.clone();
            loom::thread::spawn(move || {
                pool.pause();
                pool.resume();
            })
        };
        pool.run(|team| {
            cells.add_one(team.index());
            team.barrier();
        });
        other.join().unwrap();
        assert_eq!(cells.get(1), 1);
    });
}
