//! Case B34: a panic in any member reaches the caller, after everybody has left, and only then.

#![cfg(not(loom))]

mod common;

use ck_threadpool::{SharedSlice, ThreadPool, WaitPolicy};
use common::HangGuard;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

fn pools() -> impl Iterator<Item = ThreadPool> {
    [WaitPolicy::DEFAULT, WaitPolicy::SLEEP]
        .into_iter()
        .map(|policy| ThreadPool::builder().threads(4).wait_policy(policy).build().unwrap())
}

/// A panic that writes nothing to the test's output.
fn quiet_panic(index: usize) -> ! {
    resume_unwind(Box::new(index))
}

#[test]
fn a_panic_before_the_barrier_ends_the_dispatch_for_all() {
    let _guard = HangGuard::seconds("a panic before the barrier", 60);
    for pool in pools() {
        for panicking in 0..4 {
            let inside = AtomicUsize::new(0);
            let mut buffer = vec![0u64; 4096];
            let shared = SharedSlice::new(&mut buffer);
            let call = catch_unwind(AssertUnwindSafe(|| {
                pool.run(|team| {
                    inside.fetch_add(1, SeqCst);
                    let leave = Leave(&inside);
                    if team.index() == panicking {
                        quiet_panic(panicking);
                    }
                    let part = shared.part(team);
                    let start = Instant::now();
                    while start.elapsed() < Duration::from_millis(20) {
                        part.iter_mut().for_each(|value| *value += 1);
                    }
                    team.barrier();
                    drop(leave);
                    unreachable!("a member passed a barrier that another one never reached");
                });
            }));
            assert_eq!(*call.unwrap_err().downcast::<usize>().unwrap(), panicking);
            assert_eq!(inside.load(SeqCst), 0, "the panic came before everybody had left");
            drop(buffer);
            assert_eq!(pool.collect(|team| team.index()), [0, 1, 2, 3]);
        }
    }
}

struct Leave<'a>(&'a AtomicUsize);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[test]
fn a_panic_after_the_barrier_comes_when_all_have_left() {
    let _guard = HangGuard::seconds("a panic after the barrier", 60);
    for pool in pools() {
        for panicking in 0..4 {
            let left = AtomicUsize::new(0);
            let call = catch_unwind(AssertUnwindSafe(|| {
                pool.run(|team| {
                    team.barrier();
                    if team.index() == panicking {
                        quiet_panic(panicking);
                    }
                    std::thread::sleep(Duration::from_millis(5));
                    left.fetch_add(1, SeqCst);
                });
            }));
            assert_eq!(*call.unwrap_err().downcast::<usize>().unwrap(), panicking);
            assert_eq!(left.load(SeqCst), 3);
            pool.run(|team| team.barrier());
        }
    }
}

#[test]
fn of_several_panics_the_lowest_members_reaches_the_caller() {
    let _guard = HangGuard::seconds("several panics", 60);
    for pool in pools() {
        for lowest in 0..4 {
            let call = catch_unwind(AssertUnwindSafe(|| {
                pool.run(|team| {
                    if team.index() >= lowest {
                        // The lowest comes last.
                        std::thread::sleep(Duration::from_millis(3 * (4 - team.index()) as u64));
                        quiet_panic(team.index());
                    }
                });
            }));
            assert_eq!(*call.unwrap_err().downcast::<usize>().unwrap(), lowest);
        }
    }
}

#[test]
fn a_payload_that_panics_when_dropped_does_no_harm() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                // Nobody can take this one: it has no size, so that it is no leak either.
                resume_unwind(Box::new(()));
            }
        }
    }
    let _guard = HangGuard::seconds("a payload that panics", 30);
    let pool = ThreadPool::new(4).unwrap();
    for _ in 0..20 {
        let call = catch_unwind(AssertUnwindSafe(|| pool.run(|_| resume_unwind(Box::new(Bomb)))));
        std::mem::forget(call.unwrap_err());
        assert_eq!(pool.collect(|team| team.size()), [4; 4]);
    }
}

#[test]
fn a_panic_in_a_team_of_one_reaches_the_caller() {
    let pool = ThreadPool::new(2).unwrap();
    let call = catch_unwind(AssertUnwindSafe(|| pool.run_on(1, |_| panic_any(7usize))));
    assert_eq!(*call.unwrap_err().downcast::<usize>().unwrap(), 7);
    pool.run(|team| team.barrier());
}

#[test]
fn a_member_that_catches_its_interruption_cannot_go_on_with_the_team() {
    let _guard = HangGuard::seconds("caught interruption", 30);
    let pool = ThreadPool::new(2).unwrap();
    let mut data = [0; 2];
    let shared = SharedSlice::new(&mut data);
    let refused = AtomicUsize::new(0);
    let call = catch_unwind(AssertUnwindSafe(|| {
        pool.run(|team| {
            if team.index() == 1 {
                quiet_panic(1);
            }
            assert!(catch_unwind(AssertUnwindSafe(|| team.barrier())).is_err());
            assert!(team.try_barrier().is_err());
            assert!(catch_unwind(AssertUnwindSafe(|| shared.part(team).len())).is_err());
            refused.fetch_add(1, SeqCst);
        });
    }));
    assert_eq!(*call.unwrap_err().downcast::<usize>().unwrap(), 1);
    assert_eq!(refused.into_inner(), 1);
}

#[test]
fn an_interruption_that_was_kept_is_a_panic_like_any_other() {
    let _guard = HangGuard::seconds("kept interruption", 60);
    for pool in pools() {
        let kept = std::sync::Mutex::new(None);
        let missed = catch_unwind(AssertUnwindSafe(|| {
            pool.run_on(2, |team| {
                if team.index() == 0 {
                    *kept.lock().unwrap() = team.try_barrier().err();
                }
            });
        }));
        assert!(missed.is_err(), "member 1 missed the barrier");
        let interrupted = kept.lock().unwrap().take().unwrap();
        let kept = std::sync::Mutex::new(Some(interrupted));
        let again = catch_unwind(AssertUnwindSafe(|| {
            pool.run_on(2, |team| {
                if team.index() == 1 {
                    resume_unwind(Box::new(kept.lock().unwrap().take().unwrap()));
                }
            });
        }));
        assert!(again.is_err(), "the payload is the member's own");
    }
}
