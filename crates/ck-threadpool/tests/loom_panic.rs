//! Model: a panic in a member, and an error, while the others are anywhere.
//!
//!     RUSTFLAGS="--cfg loom" cargo test --release -p ck-threadpool --test 'loom_*'

#![cfg(loom)]

mod common_loom;

use common_loom::{Cells, model, pool};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

#[test]
fn a_panic_before_a_barrier_releases_the_others_and_reaches_the_caller() {
    for panicking in 0..3 {
        model(1, move || {
            let pool = pool(3);
            let cells = Cells::new(3);
            let call = catch_unwind(AssertUnwindSafe(|| {
                pool.run(|team| {
                    cells.add_one(team.index());
                    if team.index() == panicking {
                        resume_unwind(Box::new(panicking));
                    }
                    team.barrier();
                });
            }));
            assert_eq!(*call.unwrap_err().downcast::<usize>().unwrap(), panicking);
            assert_eq!([0, 1, 2].map(|index| cells.get(index)), [1; 3]);
        });
    }
}

#[test]
fn the_pool_works_after_a_panic() {
    model(2, || {
        let pool = pool(2);
        let call = catch_unwind(AssertUnwindSafe(|| {
            pool.run(|team| {
                team.barrier();
                if team.index() == 1 {
                    resume_unwind(Box::new(()));
                }
                team.barrier();
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

#[test]
fn the_error_of_the_lowest_member_is_chosen() {
    model(1, || {
        let pool = pool(3);
        let result = pool.try_run(|team| {
            if team.index() > 0 {
                return Err(team.index());
            }
            team.barrier();
            Ok(())
        });
        assert_eq!(result, Err(1));
    });
}
