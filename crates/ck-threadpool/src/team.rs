//! A member's view of the dispatch it takes part in.

use crate::local;
use crate::shared::{Job, Shared};
use crate::split;
use crate::taken::Taken;
use crate::word::ProgressWord;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::resume_unwind;

/// A member's handle on the team that runs a dispatch.
///
/// Every member gets its own. It says which member this is and of how many, cuts ranges into fair
/// shares, and has the barrier. It cannot leave the closure or its thread, so its index stands for
/// this member alone; parts of a [`SharedSlice`](crate::SharedSlice) are lent against it.
#[derive(Debug)]
pub struct Team<'a> {
    /// Absent in a team of one.
    shared: Option<&'a Shared>,
    index: usize,
    size: usize,
    id: u64,
    start: ProgressWord,
    /// Barriers passed.
    phase: u64,
    interrupted: bool,
    taken: Taken,
    /// Ties the handle to its thread, and its lifetime to one dispatch only: handles of two
    /// dispatches cannot be swapped.
    bound: PhantomData<(*mut (), Cell<&'a ()>)>,
}

/// The dispatch was broken off, so that a barrier cannot be passed any more.
///
/// Another member panicked, returned an error from [`ThreadPool::try_run`](crate::ThreadPool::try_run),
/// or returned without having arrived at this barrier.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the dispatch was broken off: another member panicked, left with an error or missed a barrier"
)]
pub struct Interrupted(pub(crate) ());

impl<'a> Team<'a> {
    /// The only member of a team of one.
    pub(crate) fn alone(id: u64) -> Self {
        Self::new(None, id, ProgressWord(0), 0, 1)
    }

    pub(crate) fn member(shared: &'a Shared, job: &Job, index: usize, size: usize) -> Self {
        Self::new(Some(shared), job.id, job.start, index, size)
    }

    fn new(
        shared: Option<&'a Shared>,
        id: u64,
        start: ProgressWord,
        index: usize,
        size: usize,
    ) -> Self {
        let taken = Taken::new();
        Self {
            shared,
            index,
            size,
            id,
            start,
            phase: 0,
            interrupted: false,
            taken,
            bound: PhantomData,
        }
    }

    /// Which member this is: `0..size()`. Member 0 is the thread that called the pool.
    #[inline]
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// How many members the team has.
    ///
    /// At most what was asked for; 1 when the dispatch was made from inside another one of the same
    /// pool, or in a child process.
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// This member's share of `0..len`: contiguous, in the order of the members, sizes differing by
    /// at most one. Empty for members beyond `len`.
    #[inline]
    #[must_use]
    pub fn split(&self, len: usize) -> Range<usize> {
        split::split(len, self.index, self.size)
    }

    /// This member's share of `0..len` in whole blocks of `block` elements.
    ///
    /// The numbers of blocks differ by at most one among the members. A short last block belongs to
    /// the last member that gets any.
    ///
    /// # Panics
    ///
    /// Panics if `block` is 0.
    #[inline]
    #[must_use]
    pub fn split_blocks(&self, len: usize, block: usize) -> Range<usize> {
        split::split_blocks(len, block, self.index, self.size)
    }

    /// Waits until all members of the team are here. What any of them did before, all of them see
    /// after.
    ///
    /// Every member must take part in every barrier, also one without work. One that returns
    /// instead breaks the dispatch off: the others leave, and the caller gets a panic that says so.
    ///
    /// # Panics
    ///
    /// Unwinds, without a message of its own, if the dispatch is broken off: because another member
    /// panicked, returned an error, or missed this barrier. The caller learns the cause. With
    /// `panic = "abort"` use [`Team::try_barrier`] where members may return errors.
    #[inline]
    pub fn barrier(&mut self) {
        if let Err(interrupted) = self.try_barrier() {
            leave(interrupted);
        }
    }

    /// [`Team::barrier`] with the broken dispatch as an error value.
    ///
    /// After an error the member should return. Whatever it returns counts for nothing; the cause is
    /// reported instead.
    ///
    /// # Errors
    ///
    /// [`Interrupted`] if the dispatch is broken off.
    #[inline]
    pub fn try_barrier(&mut self) -> Result<(), Interrupted> {
        if let Some(shared) = self.shared {
            self.meet(shared)?;
        }
        self.phase += 1;
        self.taken.clear();
        Ok(())
    }

    fn meet(&mut self, shared: &Shared) -> Result<(), Interrupted> {
        if self.interrupted {
            return Err(Interrupted(()));
        }
        let arrivals = (self.phase + 1).checked_mul(self.size as u64);
        let arrivals = arrivals.filter(|&arrivals| arrivals < ProgressWord::ARRIVAL_LIMIT);
        let arrivals = arrivals.expect("a dispatch has fewer than 2^49 arrivals at barriers");
        let goal = self.start.arrivals() + arrivals;
        let result = shared.wait_at_barrier(self.index, self.size, self.phase, goal, self.start);
        self.interrupted = result.is_err();
        result
    }

    /// Runs `piece` on member 0 while the others wait: a barrier, the piece, a barrier.
    ///
    /// # Panics
    ///
    /// As [`Team::barrier`].
    pub fn single(&mut self, piece: impl FnOnce(&Self)) {
        self.barrier();
        if self.index == 0 {
            piece(self);
        }
        self.barrier();
    }

    /// Ends the dispatch for the members that wait at a barrier.
    pub(crate) fn break_off(&self) {
        if let Some(shared) = self.shared {
            shared.break_off(self.size);
        }
    }

    pub(crate) fn interrupted(&self) -> bool {
        self.interrupted
    }

    /// The number of the dispatch, and of its barriers that this member has passed.
    ///
    /// # Panics
    ///
    /// Unwinds if this member left a barrier because the dispatch was broken off: it is then in no
    /// phase at all, since others may have passed that barrier.
    #[inline]
    pub(crate) fn moment(&self) -> (u64, u64) {
        if self.interrupted {
            leave(Interrupted(()));
        }
        (self.id, self.phase)
    }

    /// What this member has taken for itself since the last barrier.
    #[inline]
    pub(crate) fn taken(&self) -> &Taken {
        &self.taken
    }
}

/// Runs `f` as a team of one, without a pool: on the calling thread, with barriers that do nothing.
///
/// For code that is written against a [`Team`] and is also used where there is no pool.
///
/// ```
/// let size = ck_threadpool::solo(|team| {
///     team.barrier();
///     team.size()
/// });
/// assert_eq!(size, 1);
/// ```
pub fn solo<R>(f: impl FnOnce(&mut Team<'_>) -> R) -> R {
    f(&mut Team::alone(local::next_id()))
}

/// Unwinds out of the closure without running the panic hook: the cause is reported elsewhere.
#[cold]
fn leave(interrupted: Interrupted) -> ! {
    resume_unwind(Box::new(interrupted))
}
