//! What the caller and the workers of a pool share, and the protocol between them.
//!
//! The README states the protocol; this folder is its only implementation. The caller's side is
//! [`Shared::dispatch`], the workers' side is [`Shared::work`], and both meet in
//! [`Shared::wait_at_barrier`].

mod caller;
mod member;
mod worker;

use crate::fork;
use crate::parker::Parker;
use crate::seat::Seat;
use crate::sync::{AtomicU64, Mutex, Ordering, UnsafeCell};
use crate::team::Team;
use crate::wait::{Breath, Budget, Patience, WaitPolicy};
use crate::word::ProgressWord;
use crossbeam_utils::CachePadded;
use std::any::Any;
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
    seat: Seat,
}

impl Slot {
    fn new() -> Self {
        Self { parker: Parker::new(), patience: Patience::new(), seat: Seat::new() }
    }
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
    /// This process is a child that was forked inside of the dispatch, and has none of the workers.
    Forked,
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
        Self {
            front: CachePadded::new(Front {
                order: AtomicU64::new(0),
                progress: AtomicU64::new(start.0),
                job: UnsafeCell::new(job),
            }),
            slots: (0..threads).map(|_| CachePadded::new(Slot::new())).collect(),
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

    /// Polls as member `index` within `budget`; `None` means that it must sleep.
    fn poll<T>(&self, index: usize, budget: Budget, ready: impl FnMut() -> Option<T>) -> Option<T> {
        let Slot { patience, seat, .. } = &*self.slots[index];
        let yield_cpu = || Seat::yield_cpu(index, self.slots.iter().map(|slot| &slot.seat));
        let found = patience.poll(budget, yield_cpu, ready);
        seat.hide();
        found
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
}

/// Takes a lock whose owners cannot leave it in a bad state, whether or not one of them panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> impl std::ops::DerefMut<Target = T> + '_ {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
