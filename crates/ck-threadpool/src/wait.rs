//! How long a thread polls before it sleeps.

use crate::seat::Yielded;
use crate::sync::{AtomicU32, AtomicU64, Ordering, pause_instruction, spin_loop, yield_now};
use std::sync::OnceLock;
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
    /// How long it may poll, or give way if the team is crowded.
    pub(crate) limit: Duration,
    /// Whether the team has more members than there are CPUs.
    pub(crate) crowded: bool,
    pub(crate) yields: u32,
    pub(crate) breath: Breath,
    /// Breaths to take before the first look: [`Budget::AFTER_WORK`] or [`Budget::IN_STEP`].
    pub(crate) first: u32,
}

impl Budget {
    /// For a worker that has just finished: its caller collects that, and orders the next dispatch,
    /// on the line that the worker would look at.
    pub(crate) const AFTER_WORK: u32 = 2;
    /// For a member that waits for others who should be as far as it is.
    pub(crate) const IN_STEP: u32 = 1;
}

/// The length of the pause between two polls, in the CPU's pause instructions.
///
/// Each poll of a line that another CPU is about to change takes that line away from it. So a wait
/// starts with a pause, in which a balanced team's last members arrive, and pauses between polls.
/// How long the instruction takes differs by a factor of ten from CPU to CPU; so it is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Breath(u32);

/// About a third of the time in which a line goes to another CPU and comes back.
const BREATH: Duration = Duration::from_nanos(40);

impl Breath {
    /// Times the pause instruction: some microseconds, once per process.
    pub(crate) fn measured() -> Self {
        const PAUSES: u32 = 200;
        static BREATH_IN_PAUSES: OnceLock<u32> = OnceLock::new();
        let time = |_| {
            let start = Instant::now();
            for _ in 0..PAUSES {
                pause_instruction();
            }
            start.elapsed()
        };
        let pauses = || {
            let shortest = (0..5).map(time).min().unwrap_or_default().max(Duration::from_nanos(1));
            let pauses = BREATH.as_secs_f64() * f64::from(PAUSES) / shortest.as_secs_f64();
            pauses.round().clamp(1.0, 64.0) as u32
        };
        Self(*BREATH_IN_PAUSES.get_or_init(pauses))
    }

    #[inline]
    fn take(self) {
        for _ in 0..self.0 {
            spin_loop();
        }
    }
}

/// Polls between two looks at the clock, which costs half as much as a poll.
const POLLS_PER_LOOK: u32 = 32;

/// Looks at the clock between two yields: about 20 microseconds. The thread that is waited for may be
/// one that this CPU could run.
const LOOKS_PER_YIELD: u64 = 16;

/// A gap between two looks with a yield between them that says that another thread used this CPU.
const SHARED_CPU: Duration = Duration::from_micros(100);

/// A gap between two looks at the clock that only a thread sees that lost its CPU: they are one to
/// two microseconds apart, and a slice of another thread is a millisecond or more.
const OFF_CPU: Duration = Duration::from_micros(500);

/// Waits without polling after a loss of the CPU, and at most after repeated ones.
const FIRST_PENALTY: u32 = 8;
const LAST_PENALTY: u32 = 1 << 12;

/// Losses further apart than this have nothing to do with each other.
const FORGET: Duration = Duration::from_millis(100);

/// One member's memory of whether polling has been worth it lately.
///
/// Only the member itself looks at it. The fields are atomic, and relaxed, because a member's thread
/// changes from dispatch to dispatch for member 0.
#[derive(Debug)]
pub(crate) struct Patience {
    /// Waits left that must not poll.
    skip: AtomicU32,
    /// How many waits the last loss of the CPU has cost.
    penalty: AtomicU32,
    /// When that was, in microseconds of [`micros`].
    lost: AtomicU64,
}

impl Patience {
    pub(crate) fn new() -> Self {
        Self { skip: AtomicU32::new(0), penalty: AtomicU32::new(0), lost: AtomicU64::new(0) }
    }

    /// Polls within `budget`; `None` when it is used up, or when something else than the time is.
    ///
    /// `yield_cpu` lets other threads have this CPU now and then.
    pub(crate) fn poll<T>(
        &self,
        budget: Budget,
        yield_cpu: impl Fn() -> Yielded,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        if budget.limit.is_zero() && budget.yields == 0 {
            return ready();
        }
        let skip = self.skip.load(Ordering::Relaxed);
        if skip > 0 {
            self.skip.store(skip - 1, Ordering::Relaxed);
            return ready();
        }
        let found = if budget.crowded { None } else { self.spin(budget, yield_cpu, &mut ready) };
        found.or_else(|| self.give_way(budget, ready))
    }

    /// Polls, and asks now and then whether another thread needs this CPU.
    fn spin<T>(
        &self,
        budget: Budget,
        yield_cpu: impl Fn() -> Yielded,
        ready: &mut impl FnMut() -> Option<T>,
    ) -> Option<T> {
        for _ in 1..budget.first {
            budget.breath.take();
        }
        let mut clock = None;
        for look in 1_u64.. {
            for _ in 0..POLLS_PER_LOOK {
                budget.breath.take();
                if let Some(found) = ready() {
                    return Some(found);
                }
            }
            let now = Instant::now();
            let (start, before) = *clock.get_or_insert((now, now));
            let gave_way = look.is_multiple_of(LOOKS_PER_YIELD);
            if now - before > if gave_way { SHARED_CPU } else { OFF_CPU } {
                self.lose_patience();
                return None;
            }
            if now - start >= budget.limit {
                return None;
            }
            clock = Some((start, now));
            if (look + 1).is_multiple_of(LOOKS_PER_YIELD) {
                match yield_cpu() {
                    Yielded::Stayed => {}
                    // A move takes long; that says nothing of the CPU that the thread is on now.
                    Yielded::Moved => clock = Some((start, Instant::now())),
                    Yielded::Stuck => {
                        self.lose_patience();
                        return None;
                    }
                }
            }
        }
        None
    }

    /// Lets other threads have the CPU between polls: a crowded team for as long as it may, any
    /// other for a few times.
    fn give_way<T>(&self, budget: Budget, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
        if self.skip.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let start = Instant::now();
        let mut before = start;
        for turn in 0.. {
            let found = ready();
            let now = Instant::now();
            // Also if the wait is over: what it cost was a slice of another thread.
            if now - before > OFF_CPU {
                self.lose_patience();
                return found;
            }
            if found.is_some() {
                return found;
            }
            if turn >= budget.yields && !(budget.crowded && now - start < budget.limit) {
                return None;
            }
            before = now;
            yield_now();
        }
        None
    }

    #[cold]
    fn lose_patience(&self) {
        let now = micros();
        let recent = u128::from(now - self.lost.swap(now, Ordering::Relaxed)) < FORGET.as_micros();
        let last = if recent { self.penalty.load(Ordering::Relaxed) } else { 0 };
        let penalty = (last * 2).clamp(FIRST_PENALTY, LAST_PENALTY);
        self.penalty.store(penalty, Ordering::Relaxed);
        self.skip.store(penalty, Ordering::Relaxed);
    }
}

/// Microseconds since the first call in this process.
fn micros() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed();
    u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn budget() -> Budget {
        let breath = Breath::measured();
        let limit = Duration::from_micros(50);
        Budget { limit, crowded: false, yields: 2, breath, first: Budget::IN_STEP }
    }

    fn yielding() -> Yielded {
        yield_now();
        Yielded::Stayed
    }

    #[test]
    fn polling_ends_with_the_budget() {
        for crowded in [false, true] {
            let budget = Budget { crowded, ..budget() };
            assert_eq!(Patience::new().poll(budget, yielding, || None::<()>), None);
        }
    }

    #[test]
    fn what_is_there_is_found_with_and_without_polling() {
        let none = Budget { limit: Duration::ZERO, yields: 0, ..budget() };
        for budget in [budget(), none, Budget { crowded: true, ..budget() }] {
            assert_eq!(Patience::new().poll(budget, yielding, || Some(7)), Some(7));
        }
    }

    #[test]
    fn a_lost_cpu_costs_waits_without_polling_and_more_the_next_time() {
        let patience = Patience::new();
        for waits in [FIRST_PENALTY, 2 * FIRST_PENALTY, 4 * FIRST_PENALTY] {
            patience.lose_patience();
            for _ in 0..waits {
                let mut looks = 0;
                let look = || {
                    looks += 1;
                    None::<()>
                };
                assert_eq!(patience.poll(budget(), yielding, look), None);
                assert_eq!(looks, 1);
            }
        }
        let mut looks = 0;
        let look = || {
            looks += 1;
            (looks == 3).then_some(())
        };
        assert_eq!(patience.poll(budget(), yielding, look), Some(()));
    }

    #[test]
    fn a_member_that_is_stuck_sleeps_and_does_not_poll_for_a_while() {
        let patience = Patience::new();
        assert_eq!(patience.poll(budget(), || Yielded::Stuck, || None::<()>), None);
        assert_eq!(patience.skip.load(Ordering::Relaxed), FIRST_PENALTY);
    }

    #[test]
    fn a_lost_cpu_is_noticed_when_the_wait_is_over_too() {
        for crowded in [false, true] {
            let patience = Patience::new();
            let mut looks = 0;
            let look = || {
                looks += 1;
                if looks == 2 {
                    std::thread::sleep(2 * OFF_CPU);
                }
                (looks == 2).then_some(())
            };
            let limit = Duration::from_nanos(1);
            let budget = Budget { crowded, limit, ..budget() };
            assert_eq!(patience.give_way(budget, look), Some(()));
            assert_eq!(patience.skip.load(Ordering::Relaxed), FIRST_PENALTY);
        }
    }

    #[test]
    fn the_penalty_has_an_end() {
        let patience = Patience::new();
        (0..100).for_each(|_| patience.lose_patience());
        assert_eq!(patience.skip.load(Ordering::Relaxed), LAST_PENALTY);
    }
}
