//! The caller's side: gives the order, takes part, waits for the end.

use super::{Failure, Job, Outcome, Shared, lock};
use crate::sync::Ordering;
use crate::team::Team;
use crate::word::{OrderWord, ProgressWord};

impl Shared {
    /// Runs `f` on members `0..size`, the calling thread being member 0, and returns when all of
    /// them have left it.
    ///
    /// The caller must hold the pool's lock: one dispatch at a time. `size` is 2 or more.
    pub(crate) fn dispatch<F>(&self, size: usize, id: u64, f: &F) -> Outcome
    where
        F: Fn(&mut Team<'_>) + Sync,
    {
        assert!((2..=self.threads()).contains(&size), "a dispatch needs a team, found {size}");
        let start = self.start_of_dispatch();
        let job = Job { call: call::<F>, closure: std::ptr::from_ref(f).cast(), id, start };
        self.front.job.with_mut(|cell| {
            // SAFETY: no other thread looks at the cell now: workers read it only as members of a
            // generation's team, and the caller of the last generation, before it gave the lock to
            // this one, saw all of that team finish.
            unsafe { *cell = job }
        });
        let old = OrderWord(self.front.order.load(Ordering::Relaxed));
        // Release: gives the job to the workers. Acquire: with a sleeper's mark comes its
        // announcement.
        let old = OrderWord(self.front.order.fetch_add(old.next(size), Ordering::AcqRel));
        if old.sleepers() > 0 {
            self.wake(1..size);
        }
        self.take_part(&job, 0, size);
        let end = self.join(size, start);
        if end.finished_since(start) != size - 1 {
            return Outcome::Forked;
        }
        if end.broken() { self.collect_failure(end) } else { Outcome::Done }
    }

    /// The progress word that the next dispatch starts from. Nobody else changes it meanwhile.
    fn start_of_dispatch(&self) -> ProgressWord {
        let word = ProgressWord(self.front.progress.load(Ordering::Relaxed));
        if word.arrivals() < ProgressWord::ARRIVAL_LIMIT {
            return word;
        }
        self.front.progress.store(word.cleared().0, Ordering::Relaxed);
        word.cleared()
    }

    /// Waits until every worker of the team has finished.
    fn join(&self, size: usize, start: ProgressWord) -> ProgressWord {
        let ready = |word: u64| {
            let word = ProgressWord(word);
            (word.finished_since(start) == size - 1).then_some(word)
        };
        let slot = &self.slots[0];
        // Acquire: what the workers did happens before what the caller does next.
        let poll = || ready(self.front.progress.load(Ordering::Acquire));
        if let Some(word) = self.poll(0, self.busy_budget(size), poll) {
            return word;
        }
        loop {
            slot.parker.announce();
            let word = self.front.progress.fetch_or(ProgressWord::JOIN_SLEEPER, Ordering::AcqRel);
            if ready(word).is_some() || self.forked() {
                slot.parker.stay_awake();
                let word =
                    self.front.progress.fetch_and(!ProgressWord::JOIN_SLEEPER, Ordering::AcqRel);
                return ProgressWord(word);
            }
            if ProgressWord(word).has(ProgressWord::BARRIER_SLEEPERS) {
                // Somebody sleeps in a barrier at which this member will not arrive any more.
                self.wake(1..size);
            }
            slot.parker.sleep();
        }
    }

    /// Takes what the members of a broken dispatch left behind, and makes the pool usable again.
    #[cold]
    fn collect_failure(&self, end: ProgressWord) -> Outcome {
        self.front.progress.store(end.cleared().0, Ordering::Relaxed);
        match lock(&self.failure).take() {
            None => Outcome::Done,
            Some(Failure::Panic { payload, .. }) => Outcome::Panicked(payload),
            Some(Failure::MissedBarrier) => Outcome::MissedBarrier,
        }
    }
}

/// Calls the closure behind `closure`.
///
/// # Safety
///
/// - `closure` points to an `F` that lives until this returns.
unsafe fn call<F: Fn(&mut Team<'_>)>(closure: *const (), team: &mut Team<'_>) {
    // SAFETY: the caller's obligation, word for word; the pointer came from a reference.
    let f = unsafe { &*closure.cast::<F>() };
    f(team);
}
