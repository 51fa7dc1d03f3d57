//! The two atomic words of the protocol: what each bit means, and a decoded form for people.

use std::fmt;

/// The most members that a team can have: what the size field of an [`OrderWord`] holds.
pub(crate) const MAX_THREADS: usize = (1 << 10) - 1;

/// The word by which the caller gives an order to its workers.
///
/// | bits | field | changed by |
/// | --- | --- | --- |
/// | 0 | shutdown | the thread that drops the pool |
/// | 1 | paused | any thread, by `pause` and `resume` |
/// | 2..12 | sleepers: workers that sleep, or are about to | those workers |
/// | 12..22 | size: members of the team | the caller that holds the lock |
/// | 22..64 | generation: dispatches so far | the caller that holds the lock |
///
/// The generation wraps after 2^42 dispatches (five days of nothing but empty ones). A worker only
/// compares it with the last one that it took part in, so it would have to be left out of exactly a
/// multiple of 2^42 dispatches to miss one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderWord(pub(crate) u64);

impl OrderWord {
    pub(crate) const SHUTDOWN: u64 = 1;
    pub(crate) const PAUSED: u64 = 1 << 1;
    pub(crate) const ONE_SLEEPER: u64 = 1 << 2;
    const FIELD: u64 = MAX_THREADS as u64;
    const SIZE_SHIFT: u32 = 12;
    const GENERATION_SHIFT: u32 = 22;

    pub(crate) const fn shutdown(self) -> bool {
        self.0 & Self::SHUTDOWN != 0
    }

    pub(crate) const fn paused(self) -> bool {
        self.0 & Self::PAUSED != 0
    }

    pub(crate) const fn sleepers(self) -> u64 {
        (self.0 >> 2) & Self::FIELD
    }

    pub(crate) const fn size(self) -> usize {
        ((self.0 >> Self::SIZE_SHIFT) & Self::FIELD) as usize
    }

    pub(crate) const fn generation(self) -> u64 {
        self.0 >> Self::GENERATION_SHIFT
    }

    /// What to add to a word of team size `self.size()` to order the next dispatch for `size` members.
    ///
    /// The addition leaves the flags and the count of sleepers, which others change, as they are.
    pub(crate) const fn next(self, size: usize) -> u64 {
        let old = (self.size() as u64) << Self::SIZE_SHIFT;
        let new = (size as u64) << Self::SIZE_SHIFT;
        (1u64 << Self::GENERATION_SHIFT).wrapping_add(new).wrapping_sub(old)
    }
}

impl fmt::Debug for OrderWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrderWord")
            .field("generation", &self.generation())
            .field("size", &self.size())
            .field("sleepers", &self.sleepers())
            .field("paused", &self.paused())
            .field("shutdown", &self.shutdown())
            .finish()
    }
}

/// The word by which the members of a team see how far the others are.
///
/// | bits | field | changed by |
/// | --- | --- | --- |
/// | 0, 1 | a member sleeps in a barrier of even, odd number | that member; cleared by the last to arrive |
/// | 2 | the caller sleeps in the join | the caller |
/// | 3 | broken: a member panicked, left early, or missed a barrier | any member; cleared by the caller |
/// | 4..54 | arrivals at barriers, all told | every member at a barrier |
/// | 54..64 | workers that have finished, all told, modulo 1024 | every worker at its end |
///
/// Both counts go on from dispatch to dispatch, so that nothing has to be reset before the next one:
/// a reset would cost an ownership transfer of this cache line. A dispatch notes where they started.
/// The finished count overflows out of the top; arrivals are set back by the caller, between
/// dispatches, long before they could run into it (see [`ProgressWord::ARRIVAL_LIMIT`]).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProgressWord(pub(crate) u64);

impl ProgressWord {
    /// The flags of sleepers in barriers, both parities.
    pub(crate) const BARRIER_SLEEPERS: u64 = 0b11;
    pub(crate) const JOIN_SLEEPER: u64 = 1 << 2;
    pub(crate) const BROKEN: u64 = 1 << 3;
    pub(crate) const ONE_ARRIVAL: u64 = 1 << Self::ARRIVALS_SHIFT;
    pub(crate) const ONE_FINISHED: u64 = 1 << Self::FINISHED_SHIFT;
    const ARRIVALS_SHIFT: u32 = 4;
    const FINISHED_SHIFT: u32 = 54;

    /// A dispatch starts with fewer arrivals than this, and fails before it adds as many again (at
    /// 20 ns for each that would take 130 days).
    pub(crate) const ARRIVAL_LIMIT: u64 = 1 << 49;

    /// The flag of a sleeper in the barrier that completes `phase`.
    pub(crate) const fn sleeper_of(phase: u64) -> u64 {
        1 << (phase & 1)
    }

    pub(crate) const fn arrivals(self) -> u64 {
        (self.0 >> Self::ARRIVALS_SHIFT)
            & ((1 << (Self::FINISHED_SHIFT - Self::ARRIVALS_SHIFT)) - 1)
    }

    pub(crate) const fn finished(self) -> u64 {
        self.0 >> Self::FINISHED_SHIFT
    }

    /// How many workers have finished since the word was `start`.
    pub(crate) const fn finished_since(self, start: Self) -> usize {
        (self.finished().wrapping_sub(start.finished()) & MAX_THREADS as u64) as usize
    }

    pub(crate) const fn broken(self) -> bool {
        self.0 & Self::BROKEN != 0
    }

    pub(crate) const fn has(self, flags: u64) -> bool {
        self.0 & flags != 0
    }

    /// The word as a new dispatch may find it: no flags, no arrivals.
    pub(crate) const fn cleared(self) -> Self {
        Self(self.finished() << Self::FINISHED_SHIFT)
    }
}

impl fmt::Debug for ProgressWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressWord")
            .field("finished", &self.finished())
            .field("arrivals", &self.arrivals())
            .field("broken", &self.broken())
            .field("join_sleeper", &self.has(Self::JOIN_SLEEPER))
            .field("barrier_sleepers", &(self.0 & Self::BARRIER_SLEEPERS))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_order_changes_generation_and_size_only() {
        let mut word = OrderWord((5 << 22) | (1 << 12) | (3 << 2) | OrderWord::PAUSED);
        for (count, size) in [4, 1, MAX_THREADS, 2, 2, 1].into_iter().enumerate() {
            word = OrderWord(word.0.wrapping_add(word.next(size)));
            assert_eq!(word.size(), size);
            assert_eq!(word.generation(), 6 + count as u64);
            assert_eq!(word.sleepers(), 3);
            assert!(word.paused() && !word.shutdown());
        }
    }

    #[test]
    fn generation_wraps_without_touching_the_other_fields() {
        let word = OrderWord(u64::MAX);
        let next = OrderWord(word.0.wrapping_add(word.next(7)));
        assert_eq!((next.generation(), next.size()), (0, 7));
        assert_eq!((next.sleepers(), next.paused(), next.shutdown()), (1023, true, true));
    }

    #[test]
    fn finished_count_overflows_out_of_the_word() {
        let start = ProgressWord((1022 << 54) | (7 << 4));
        let mut word = start;
        for finished in 1..=1000 {
            word = ProgressWord(word.0.wrapping_add(ProgressWord::ONE_FINISHED));
            assert_eq!(word.finished_since(start), finished);
            assert_eq!(word.arrivals(), 7);
        }
    }

    #[test]
    fn debug_form_names_the_fields() {
        let order = format!("{:?}", OrderWord((9 << 22) | (4 << 12) | OrderWord::SHUTDOWN));
        assert!(order.contains("generation: 9") && order.contains("size: 4"), "{order}");
        assert!(order.contains("shutdown: true"), "{order}");
        let progress = format!("{:?}", ProgressWord((2 << 54) | (6 << 4) | ProgressWord::BROKEN));
        assert!(progress.contains("finished: 2") && progress.contains("arrivals: 6"), "{progress}");
        assert!(progress.contains("broken: true"), "{progress}");
    }
}
