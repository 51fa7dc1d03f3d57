//! What every member does, the caller included: runs the job, waits at barriers, breaks off.

use super::{Failure, Job, Shared, lock};
use crate::sync::Ordering;
use crate::team::{Interrupted, Team};
use crate::word::ProgressWord;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Shared {
    /// Runs the job as member `index`, and turns a panic into a broken dispatch.
    pub(super) fn take_part(&self, job: &Job, index: usize, size: usize) {
        let mut team = Team::member(self, job, index, size);
        let result = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: `closure` is what `call` was made for (`dispatch` made both from one `f`),
            // and `f` outlives the dispatch, which ends after this member has finished.
            unsafe { (job.call)(job.closure, &mut team) }
        }));
        if let Err(payload) = result
            // A payload of that type may also be one that the closure has kept from another dispatch.
            && !(team.interrupted() && payload.is::<Interrupted>())
        {
            self.record_panic(index, payload);
            self.break_off(size);
        }
    }

    /// Keeps the panic of the lowest member.
    #[cold]
    fn record_panic(&self, index: usize, payload: Box<dyn Any + Send>) {
        let panic = Failure::Panic { index, payload };
        let mut failure = lock(&self.failure);
        let other = match &*failure {
            Some(Failure::Panic { index: first, .. }) if *first < index => Some(panic),
            _ => failure.replace(panic),
        };
        drop(failure);
        // A payload may panic when it is dropped; nobody is there any more to be told of it.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(other))) {
            std::mem::forget(panic);
        }
    }

    /// Makes every member that waits at a barrier leave, now or later.
    #[cold]
    pub(crate) fn break_off(&self, size: usize) {
        self.front.progress.fetch_or(ProgressWord::BROKEN, Ordering::AcqRel);
        self.wake(0..size);
    }

    /// Arrives at a barrier and waits for the others.
    ///
    /// `phase` counts the barriers of this dispatch, `goal` is the number of arrivals that
    /// completes this one.
    pub(crate) fn wait_at_barrier(
        &self,
        index: usize,
        size: usize,
        phase: u64,
        goal: u64,
        start: ProgressWord,
    ) -> Result<(), Interrupted> {
        // Release: what this member did before goes to the others. Acquire: the reverse, for the last.
        let word = self.front.progress.fetch_add(ProgressWord::ONE_ARRIVAL, Ordering::AcqRel);
        let word = ProgressWord(word.wrapping_add(ProgressWord::ONE_ARRIVAL));
        let flag = ProgressWord::sleeper_of(phase);
        if word.arrivals() == goal {
            if word.has(flag) {
                // Nobody can set this flag again before this member arrives at the next barrier.
                self.front.progress.fetch_and(!flag, Ordering::Relaxed);
                self.wake(0..size);
            }
            return Ok(());
        }
        let slot = &self.slots[index];
        let ready = |word: u64| {
            let word = ProgressWord(word);
            // In this order: a barrier at which all have arrived is passed by all, whatever the
            // first ones did after it.
            if word.arrivals() >= goal {
                Some(Ok(()))
            } else {
                word.broken().then_some(Err(Interrupted(())))
            }
        };
        // Acquire: what the others did before the barrier.
        let poll = || ready(self.front.progress.load(Ordering::Acquire));
        if let Some(result) = self.poll(index, self.busy_budget(size), poll) {
            return result;
        }
        loop {
            slot.parker.announce();
            let word = self.front.progress.fetch_or(flag, Ordering::AcqRel);
            if let Some(result) = ready(word) {
                slot.parker.stay_awake();
                return result;
            }
            let word = ProgressWord(word);
            // A member that has left arrived at all of its barriers before. This one is not among
            // them, as the same word says.
            if word.finished_since(start) > 0 || word.has(ProgressWord::JOIN_SLEEPER) {
                slot.parker.stay_awake();
                lock(&self.failure).get_or_insert(Failure::MissedBarrier);
                self.break_off(size);
                return Err(Interrupted(()));
            }
            if self.forked() {
                slot.parker.stay_awake();
                return Err(Interrupted(()));
            }
            slot.parker.sleep();
        }
    }
}
