//! What the models share.

use ck_threadpool::{ThreadPool, WaitPolicy};
use loom::cell::UnsafeCell;

/// Explores the schedules of `scenario` with at most so many preemptions, or as many as
/// `LOOM_MAX_PREEMPTIONS` says.
pub(crate) fn model(preemptions: usize, scenario: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.check(scenario);
}

/// A pool whose waits all sleep: a model cannot poll.
pub(crate) fn pool(threads: usize) -> ThreadPool {
    let builder = ThreadPool::builder().threads(threads).wait_policy(WaitPolicy::SLEEP);
    builder.build().unwrap()
}

/// Plain numbers in cells that tell loom of every access, so that it finds unordered ones.
pub(crate) struct Cells(Vec<UnsafeCell<u32>>);

// SAFETY: that accesses from several threads are ordered is what the models check; loom ends a model
// with a panic at the first one that is not, before it happens.
unsafe impl Sync for Cells {}
// SAFETY: the numbers belong to no thread.
unsafe impl Send for Cells {}

impl Cells {
    pub(crate) fn new(len: usize) -> Self {
        Self((0..len).map(|_| UnsafeCell::new(0)).collect())
    }

    pub(crate) fn add_one(&self, index: usize) {
        self.0[index].with_mut(|number| {
            // SAFETY: loom has just checked that no other access is unordered with this one.
            unsafe { *number += 1 }
        });
    }

    pub(crate) fn get(&self, index: usize) -> u32 {
        self.0[index].with(|number| {
            // SAFETY: loom has just checked that no write is unordered with this read.
            unsafe { *number }
        })
    }
}
