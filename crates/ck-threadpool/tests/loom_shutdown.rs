//! Model: dropping a pool, at rest, paused, before its workers have come up, and after work.
//!
//!     RUSTFLAGS="--cfg loom" cargo test --release -p ck-threadpool --test 'loom_*'

#![cfg(loom)]

mod common_loom;

use common_loom::{Cells, model, pool};

#[test]
fn a_fresh_pool_can_be_dropped() {
    model(1, || drop(pool(3)));
}

#[test]
fn a_paused_pool_can_be_dropped() {
    model(2, || {
        let pool = pool(2);
        pool.pause();
        drop(pool);
    });
}

#[test]
fn a_pool_can_be_dropped_right_after_a_dispatch_that_used_a_part_of_it() {
    model(1, || {
        let pool = pool(3);
        let cells = Cells::new(2);
        pool.run_on(2, |team| cells.add_one(team.index()));
        drop(pool);
        assert_eq!(cells.get(1), 1);
    });
}
