//! How long a thread polls before it sleeps.

use crate::sync::{AtomicU32, Ordering, spin_loop, yield_now};
use std::time::{Duration, Instant};

/// How long threads poll before they sleep: in workers between dispatches, and in a barrier or the
/// caller's join within one.
///
/// Polling makes the next step start within a cache line's transfer; waking a thread that sleeps
/// costs microseconds to tens of microseconds. Limits of zero mean: sleep at once. No limit counts
/// when a team has more members than the process has CPUs: then nobody polls.
///
/// A thread that finds that it was taken off its CPU while it polled stops polling for a while by
/// itself, since somebody else needs the CPU; possibly the very member it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitPolicy {
    /// How long a worker polls for the next dispatch.
    pub idle: Duration,
    /// How long a member polls in a barrier, and the caller for its workers.
    pub busy: Duration,
    /// How often a thread gives way to others of the same CPU, after polling and before it sleeps.
    pub yields: u32,
}

impl WaitPolicy {
    /// Two milliseconds between dispatches, 100 microseconds within one, then 2 yields.
    ///
    /// A token of a small model leaves gaps below a millisecond between its dispatches, so workers
    /// stay warm through it; two milliseconds after the last one the CPUs are free.
    pub const DEFAULT: Self =
        Self { idle: Duration::from_millis(2), busy: Duration::from_micros(100), yields: 2 };

    /// Never polls: every wait goes to sleep at once. Least CPU time, slowest hand-off.
    pub const SLEEP: Self = Self { idle: Duration::ZERO, busy: Duration::ZERO, yields: 0 };

    /// The default with another limit between dispatches.
    #[must_use]
    pub const fn with_idle(self, idle: Duration) -> Self {
        Self { idle, ..self }
    }

    /// The default with another limit within a dispatch.
    #[must_use]
    pub const fn with_busy(self, busy: Duration) -> Self {
        Self { busy, ..self }
    }

    /// The default with another number of yields.
    #[must_use]
    pub const fn with_yields(self, yields: u32) -> Self {
        Self { yields, ..self }
    }
}

impl Default for WaitPolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What one wait may spend before it must sleep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) spin: Duration,
    pub(crate) yields: u32,
}

/// Polls between two looks at the clock, which costs about as much as ten polls.
const POLLS_PER_LOOK: u32 = 64;

/// A gap between two looks at the clock that only a thread sees that lost its CPU: they are one to
/// five microseconds apart, and a slice of another thread is a millisecond or more.
const OFF_CPU: Duration = Duration::from_micros(200);

/// Waits without polling after the first loss of the CPU, and at most after repeated ones.
const FIRST_PENALTY: u32 = 64;
const LAST_PENALTY: u32 = 1 << 14;

/// One member's memory of whether polling has been worth it lately.
///
/// Only the member itself looks at it. The fields are atomic, and relaxed, because a member's thread
/// changes from dispatch to dispatch for member 0.
#[derive(Debug)]
pub(crate) struct Patience {
    /// Waits left that must not poll.
    skip: AtomicU32,
    /// How many waits the next loss of the CPU will cost.
    penalty: AtomicU32,
}

impl Patience {
    pub(crate) fn new() -> Self {
        Self { skip: AtomicU32::new(0), penalty: AtomicU32::new(FIRST_PENALTY) }
    }

    /// Polls within `budget`; `None` when it is used up.
    pub(crate) fn poll<T>(
        &self,
        budget: Budget,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        if let Some(found) = ready() {
            return Some(found);
        }
        if budget.spin.is_zero() && budget.yields == 0 {
            return None;
        }
        let skip = self.skip.load(Ordering::Relaxed);
        if skip > 0 {
            self.skip.store(skip - 1, Ordering::Relaxed);
            return None;
        }
        self.poll_patiently(budget, ready)
    }

    fn poll_patiently<T>(&self, budget: Budget, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
        let mut clock = None;
        while !budget.spin.is_zero() {
            for _ in 0..POLLS_PER_LOOK {
                spin_loop();
                if let Some(found) = ready() {
                    return Some(found);
                }
            }
            let now = Instant::now();
            let (start, before) = *clock.get_or_insert((now, now));
            if now - before > OFF_CPU {
                self.lose_patience();
                return None;
            }
            if now - start >= budget.spin {
                break;
            }
            clock = Some((start, now));
        }
        for _ in 0..budget.yields {
            let before = Instant::now();
            yield_now();
            if let Some(found) = ready() {
                return Some(found);
            }
            if before.elapsed() > OFF_CPU {
                self.lose_patience();
                return None;
            }
        }
        None
    }

    fn lose_patience(&self) {
        let penalty = self.penalty.load(Ordering::Relaxed);
        self.skip.store(penalty, Ordering::Relaxed);
        self.penalty.store((penalty * 2).min(LAST_PENALTY), Ordering::Relaxed);
    }
}
