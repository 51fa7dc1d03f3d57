//! What the caller and the workers of a pool share, and the protocol between them.
//!
//! The README states the protocol; this file is its only implementation. The caller's side is
//! [`Shared::dispatch`], the workers' side is [`Shared::work`], and both meet in
//! [`Shared::wait_at_barrier`].

use crate::fork;
use crate::parker::Parker;
use crate::sync::{AtomicU64, Mutex, Ordering, UnsafeCell};
use crate::team::{Interrupted, Team};
use crate::wait::{Breath, Budget, Patience, WaitPolicy};
use crate::word::{OrderWord, ProgressWord};
use crossbeam_utils::CachePadded;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// The closure of a dispatch with its type taken away, and where the counts stood at its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    call: unsafe fn(*const (), &mut Team<'_>),
    closure: *const (),
    /// The number that no other dispatch of the process has.
    pub(crate) id: u64,
    pub(crate) start: ProgressWord,
}

/// All that goes back and forth in a dispatch, on one cache line.
///
/// A member that has just read the line because another one changed it will be the next to change it.
/// CPUs are good at handing over a line in that pattern; with the order on one line and the progress
/// on another, each change first has to take the line away from those who poll it, and a dispatch
/// takes twice as long (measured: `docs/threadpool.md`).
#[derive(Debug)]
struct Front {
    order: AtomicU64,
    progress: AtomicU64,
    job: UnsafeCell<Job>,
}

/// What one member owns.
#[derive(Debug)]
struct Slot {
    parker: Parker,
    patience: Patience,
}

/// Why a dispatch was broken off.
#[derive(Debug)]
enum Failure {
    Panic { index: usize, payload: Box<dyn Any + Send> },
    MissedBarrier,
}

/// How a dispatch ended for its caller.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// All members returned, or one of them left early on purpose.
    Done,
    /// A member panicked with this payload.
    Panicked(Box<dyn Any + Send>),
    /// A member returned while others waited at a barrier.
    MissedBarrier,
}

/// The state that the caller and the workers share.
#[derive(Debug)]
pub(crate) struct Shared {
    front: CachePadded<Front>,
    slots: Box<[CachePadded<Slot>]>,
    failure: Mutex<Option<Failure>>,
    policy: WaitPolicy,
    breath: Breath,
    cpus: usize,
    forks: u32,
}

// SAFETY: the raw pointer in `front.job` is what keeps this from being automatic. The job is written
// by the caller that holds the pool's lock, before the order word's new generation, and read only by
// members of that generation's team, after they have seen it; the caller writes the next one only
// after it has seen all of them finish. The closure behind the pointer is `Sync` (`Shared::dispatch`
// asks for it), so that those members may call it.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// The state of a pool of `threads` members, of which member 0 is whoever calls.
    pub(crate) fn new(threads: usize, cpus: usize, policy: WaitPolicy) -> Self {
        fn nothing(_: *const (), _: &mut Team<'_>) {}
        let start = ProgressWord(0);
        let job = Job { call: nothing, closure: std::ptr::null(), id: 0, start };
        let slot = || CachePadded::new(Slot { parker: Parker::new(), patience: Patience::new() });
        Self {
            front: CachePadded::new(Front {
                order: AtomicU64::new(0),
                progress: AtomicU64::new(start.0),
                job: UnsafeCell::new(job),
            }),
            slots: (0..threads).map(|_| slot()).collect(),
            failure: Mutex::new(None),
            policy,
            breath: Breath::measured(),
            cpus,
            forks: fork::generation(),
        }
    }

    pub(crate) fn threads(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn cpus(&self) -> usize {
        self.cpus
    }

    /// Whether this process is a child that has none of the workers.
    pub(crate) fn forked(&self) -> bool {
        self.forks != fork::generation()
    }

    /// Sets flags of the order word, then wakes every worker that sleeps, to look at them.
    pub(crate) fn set_and_wake(&self, flags: u64) {
        self.front.order.fetch_or(flags, Ordering::AcqRel);
        self.wake(1..self.threads());
    }

    /// The opposite of [`Shared::set_and_wake`].
    pub(crate) fn clear_and_wake(&self, flags: u64) {
        self.front.order.fetch_and(!flags, Ordering::AcqRel);
        self.wake(1..self.threads());
    }

    /// Sets flags that workers notice without being woken.
    pub(crate) fn set(&self, flags: u64) {
        self.front.order.fetch_or(flags, Ordering::AcqRel);
    }

    fn wake(&self, members: std::ops::Range<usize>) {
        for slot in &self.slots[members] {
            slot.parker.wake();
        }
    }

    /// What a worker may spend on waiting for its next dispatch, after one of a team of `size`.
    fn idle_budget(&self, size: usize) -> Budget {
        self.budget(size, self.policy.idle, Budget::AFTER_WORK)
    }

    /// What a member of a team of `size` may spend on waiting for the others.
    fn busy_budget(&self, size: usize) -> Budget {
        self.budget(size, self.policy.busy, Budget::IN_STEP)
    }

    fn budget(&self, size: usize, limit: Duration, first: u32) -> Budget {
        let crowded = size > self.cpus;
        Budget { limit, crowded, yields: self.policy.yields, breath: self.breath, first }
    }

    // ------------------------------------------------------------------ the caller's side

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
        if let Some(word) = slot.patience.poll(self.busy_budget(size), poll) {
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

    // ------------------------------------------------------------------ the workers' side

    /// The life of the worker that is member `index`.
    pub(crate) fn work(&self, index: usize) {
        let mut last = OrderWord(0);
        while let Some(word) = self.next_order(index, last) {
            last = word;
            let job = self.front.job.with(|cell| {
                // SAFETY: this thread is a member of the team of the generation it has just seen
                // (`next_order` checked both in one word), so the job was written before, and will
                // not be written again before this thread finishes.
                unsafe { *cell }
            });
            self.take_part(&job, index, word.size());
            self.finish(word.size(), job.start);
        }
    }

    /// Waits for a dispatch after `last` in which member `index` takes part; `None` at shutdown.
    fn next_order(&self, index: usize, last: OrderWord) -> Option<OrderWord> {
        let slot = &self.slots[index];
        let budget = self.idle_budget(last.size().max(index + 1));
        let is_news = |word: OrderWord| {
            word.shutdown() || (word.size() > index && word.generation() != last.generation())
        };
        // Acquire: the job comes with the word. A pause ends the polling without news.
        let poll = || {
            let word = OrderWord(self.front.order.load(Ordering::Acquire));
            (word.paused() || is_news(word)).then_some(word)
        };
        let word = loop {
            if let Some(word) = slot.patience.poll(budget, poll)
                && is_news(word)
            {
                break word;
            }
            slot.parker.announce();
            // Release: with the mark goes the announcement. Acquire: as above.
            let word = self.front.order.fetch_add(OrderWord::ONE_SLEEPER, Ordering::AcqRel);
            if is_news(OrderWord(word)) {
                slot.parker.stay_awake();
            } else if self.forked() {
                return None;
            } else {
                slot.parker.sleep();
            }
            let word = self.front.order.fetch_sub(OrderWord::ONE_SLEEPER, Ordering::AcqRel);
            if is_news(OrderWord(word)) {
                break OrderWord(word);
            }
        };
        (!word.shutdown()).then_some(word)
    }

    /// Says that one worker has left the dispatch. It may not touch the job any more after this.
    fn finish(&self, size: usize, start: ProgressWord) {
        // Release: what this worker did goes to the caller.
        let word = self.front.progress.fetch_add(ProgressWord::ONE_FINISHED, Ordering::AcqRel);
        let word = ProgressWord(word.wrapping_add(ProgressWord::ONE_FINISHED));
        if word.has(ProgressWord::BARRIER_SLEEPERS) {
            // They may wait for an arrival that will not come: let them look again.
            self.wake(0..size);
        } else if word.has(ProgressWord::JOIN_SLEEPER) && word.finished_since(start) == size - 1 {
            self.wake(0..1);
        }
    }

    // ------------------------------------------------------------------ every member

    /// Runs the job as member `index`, and turns a panic into a broken dispatch.
    fn take_part(&self, job: &Job, index: usize, size: usize) {
        let mut team = Team::member(self, job, index, size);
        let result = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: `closure` is what `call` was made for (`dispatch` made both from one `f`),
            // and `f` outlives the dispatch, which ends after this member has finished.
            unsafe { (job.call)(job.closure, &mut team) }
        }));
        if let Err(payload) = result
            && !payload.is::<Interrupted>()
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
        if let Some(result) = slot.patience.poll(self.busy_budget(size), poll) {
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

/// Takes a lock whose owners cannot leave it in a bad state, whether or not one of them panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> impl std::ops::DerefMut<Target = T> + '_ {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
