//! Model: barriers inside a dispatch order what the members do around them.
//!
//!     RUSTFLAGS="--cfg loom" cargo test --release -p ck-threadpool --test 'loom_*'

#![cfg(loom)]

mod common_loom;

use common_loom::{Cells, model, pool};

#[test]
fn a_member_sees_what_the_others_wrote_before_the_barrier() {
    model(1, || {
        let pool = pool(3);
        let cells = Cells::new(3);
        pool.run(|team| {
            cells.add_one(team.index());
            team.barrier();
            assert_eq!((0..3).map(|index| cells.get(index)).sum::<u32>(), 3);
        });
    });
}

#[test]
fn a_value_is_not_written_again_while_others_still_read_it() {
    model(2, || {
        let pool = pool(2);
        let cells = Cells::new(2);
        pool.run(|team| {
            for round in 1..=3 {
                cells.add_one(team.index());
                team.barrier();
                assert_eq!(cells.get(1 - team.index()), round);
                team.barrier();
            }
        });
    });
}

#[test]
fn the_count_of_arrivals_goes_on_over_dispatches_of_other_sizes() {
    model(1, || {
        let pool = pool(3);
        let cells = Cells::new(3);
        for size in [3, 2] {
            pool.run_on(size, |team| {
                cells.add_one(team.index());
                team.barrier();
                assert!(cells.get(size - 1) > 0);
            });
        }
    });
}

#[test]
fn a_missed_barrier_ends_in_a_panic_wherever_the_others_wait() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    for absent in 0..2 {
        model(2, move || {
            let pool = pool(2);
            let call = catch_unwind(AssertUnwindSafe(|| {
                pool.run(|team| {
                    if team.index() != absent {
                        team.barrier();
                    }
                });
            }));
            assert!(call.is_err());
            let cells = Cells::new(2);
            pool.run(|team| {
                cells.add_one(team.index());
                team.barrier();
                assert_eq!(cells.get(1 - team.index()), 1);
            });
        });
    }
}
