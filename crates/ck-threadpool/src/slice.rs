//! A slice that the members of one dispatch write in parts and read as a whole, checked.

use crate::split;
use crate::sync::{AtomicU64, Ordering};
use crate::team::Team;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

/// An output slice that the members of a dispatch share.
///
/// It is made from a `&mut [T]` before the dispatch, and lends it out again member by member. Barriers
/// cut a dispatch into phases; what is lent in a phase ends with it, because [`Team::barrier`] needs
/// the handle that the loan borrows. Within one phase all members use the slice in one way:
///
/// | method | what a member gets |
/// | --- | --- |
/// | [`part`](Self::part), [`part_of`](Self::part_of) | its own share, in whole blocks, to write |
/// | [`next_block`](Self::next_block) | block after block that no other member gets, to write |
/// | [`own`](Self::own) | the one element of its index, to write |
/// | [`whole`](Self::whole) | everything, to write, if no other member uses the slice in this phase |
/// | [`read`](Self::read) | everything, to read |
///
/// Using it in two ways in one phase, taking a share twice, or using it from two dispatches panics
/// with a sentence that says so, before any two loans overlap. A loan costs a few nanoseconds; the
/// first one of a phase moves a cache line.
///
/// ```
/// use ck_threadpool::{SharedSlice, ThreadPool};
///
/// let pool = ThreadPool::new(2)?;
/// let (mut squares, mut sums) = ([0; 100], [0; 100]);
/// let (a, b) = (SharedSlice::new(&mut squares), SharedSlice::new(&mut sums));
/// pool.run(|team| {
///     for (i, square) in a.range(team).zip(a.part(team)) {
///         *square = i * i;
///     }
///     team.barrier(); // from here on everybody may read all squares
///     let squares = a.read(team);
///     for (i, sum) in b.range(team).zip(b.part(team)) {
///         *sum = squares[..=i].iter().sum();
///     }
/// });
/// assert_eq!(sums[99], 328350);
/// # Ok::<(), ck_threadpool::BuildError>(())
/// ```
///
/// Make a slice outside of the dispatch that uses it. A slice is known by its address: two that a closure makes one after
/// the other in one phase may have the same, and what is taken of the second one is refused as taken twice.
///
/// References die at the barrier, in the compiler already:
///
/// ```compile_fail,E0502
/// # use ck_threadpool::{SharedSlice, ThreadPool};
/// # let pool = ThreadPool::new(2).unwrap();
/// # let mut data = [0; 8];
/// let shared = SharedSlice::new(&mut data);
/// pool.run(|team| {
///     let part = shared.part(team);
///     team.barrier();
///     part[0] = 1;
/// });
/// ```
#[derive(Debug)]
pub struct SharedSlice<'a, T> {
    data: NonNull<T>,
    len: usize,
    block: usize,
    /// Blocks that were dealt out before this slice's first: see [`SharedSlice::dealt_after`].
    dealt: usize,
    /// The number of the dispatch that uses the slice; 0 before the first use.
    owner: AtomicU64,
    /// The [`Use`] that the members have agreed on last.
    state: AtomicU64,
    /// The uses that were agreed on before the dispatch.
    plan: Option<(&'a Plan, &'a [Planned])>,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: it owns the exclusive borrow `&'a mut [T]`, which may be sent if `T` may.
unsafe impl<T: Send> Send for SharedSlice<'_, T> {}
// SAFETY: through a shared reference, threads get disjoint `&mut` parts, for which `T: Send` is
// enough, or shared references, for which `read` asks for `T: Sync`; the phases in which they do are
// ordered by barriers. The other fields are atomics or never change.
unsafe impl<T: Send> Sync for SharedSlice<'_, T> {}

/// In which phase the slice is used how: phase in bits 27..64, blocks handed out (or split, where parts
/// are not of the whole slice) in 3..27, mode in 0..3.
///
/// A phase number that comes again after 2^37 barriers (an hour of nothing but barriers) with the
/// slice untouched meanwhile could only make a check stricter: a use stays refused, or a block counts
/// as handed out. It never lets two loans overlap.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Use(u64);

/// The ways to use a slice within a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Mode {
    Parts = 1,
    Blocks = 2,
    Own = 3,
    Whole = 4,
    Read = 5,
}

const PHASE_SHIFT: u32 = 27;
const BLOCK_SHIFT: u32 = 3;

/// What the planned slices of one dispatch have in common. Make one for every dispatch.
///
/// ```
/// use ck_threadpool::{Plan, Planned, SharedSlice, ThreadPool};
///
/// let (plan, mut squares, mut sums) = (Plan::new(), [0; 10], [0; 10]);
/// let a = SharedSlice::new(&mut squares).planned(&plan, &[Planned::Part, Planned::Read]);
/// let b = SharedSlice::new(&mut sums).planned(&plan, &[Planned::Unused, Planned::Part]);
/// ThreadPool::new(2)?.run(|team| {
///     for (i, square) in a.range(team).zip(a.part(team)) {
///         *square = i * i;
///     }
///     team.barrier();
///     for (i, sum) in b.range(team).zip(b.part(team)) {
///         *sum = a.read(team)[..=i].iter().sum();
///     }
/// });
/// assert_eq!(sums[9], 285);
/// # Ok::<(), ck_threadpool::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Plan {
    /// The number of the dispatch that uses the slices; 0 before the first use.
    owner: AtomicU64,
}

impl Plan {
    /// A plan that no dispatch has used yet.
    #[must_use]
    pub fn new() -> Self {
        Self { owner: AtomicU64::new(0) }
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self::new()
    }
}

/// How one phase uses a planned slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planned {
    /// Not at all.
    Unused,
    /// [`SharedSlice::part`].
    Part,
    /// [`SharedSlice::own`].
    Own,
    /// [`SharedSlice::read`].
    Read,
}

/// The most blocks that [`SharedSlice::next_block`] can hand out, and [`SharedSlice::part_of`] can split.
const MAX_BLOCKS: usize = (1 << (PHASE_SHIFT - BLOCK_SHIFT)) - 1;

impl Use {
    const fn new(phase: u64, mode: Mode) -> Self {
        Self((phase << PHASE_SHIFT) | mode as u64)
    }

    const fn is_in_phase(self, phase: u64) -> bool {
        self.0 & 0b111 != 0 && self.0 >> PHASE_SHIFT == (phase << PHASE_SHIFT) >> PHASE_SHIFT
    }

    const fn mode(self) -> u64 {
        self.0 & 0b111
    }

    const fn blocks(self) -> usize {
        (self.0 >> BLOCK_SHIFT) as usize & MAX_BLOCKS
    }

    const fn with_blocks(self, blocks: usize) -> Self {
        Self(self.0 | ((blocks as u64) << BLOCK_SHIFT))
    }

    const fn with_one_more_block(self) -> Self {
        Self(self.0 + (1 << BLOCK_SHIFT))
    }
}

impl<'a, T> SharedSlice<'a, T> {
    /// Shares `data` in parts of any length.
    pub fn new(data: &'a mut [T]) -> Self {
        Self::in_blocks(data, 1)
    }

    /// Shares `data` in blocks of `block` elements; the last one may be short.
    ///
    /// # Panics
    ///
    /// Panics if `block` is 0.
    pub fn in_blocks(data: &'a mut [T], block: usize) -> Self {
        assert!(block > 0, "a shared slice needs blocks of at least 1 element, found 0");
        Self {
            len: data.len(),
            data: NonNull::from(data).cast(),
            block,
            dealt: 0,
            owner: AtomicU64::new(0),
            state: AtomicU64::new(0),
            plan: None,
            borrow: PhantomData,
        }
    }

    /// Deals the blocks on where another slice of `blocks` blocks ended, as one deals cards.
    ///
    /// A share is one block longer than another where the blocks do not divide evenly. Slices that each
    /// begin with member 0 give it one block more every time; dealt one after the other, with the
    /// blocks of all slices before as `blocks`, the members' totals differ by at most one.
    ///
    /// ```
    /// use ck_threadpool::{SharedSlice, ThreadPool};
    ///
    /// let (mut five, mut three) = ([0; 5], [0; 3]);
    /// let a = SharedSlice::new(&mut five);
    /// let b = SharedSlice::new(&mut three).dealt_after(5);
    /// ThreadPool::new(2)?.run(|team| assert_eq!(a.part(team).len() + b.part(team).len(), 4));
    /// # Ok::<(), ck_threadpool::BuildError>(())
    /// ```
    #[must_use]
    pub fn dealt_after(mut self, blocks: usize) -> Self {
        self.dealt = blocks;
        self
    }

    /// Fixes before the dispatch how each of its phases uses the slice: `uses[0]` until the first barrier,
    /// `uses[1]` until the second. Later phases do not use it.
    ///
    /// Members then need not agree while they run, which costs each phase a transfer of a cache line between
    /// CPUs: they look the use up. See [`Plan`].
    #[must_use]
    pub fn planned(mut self, plan: &'a Plan, uses: &'a [Planned]) -> Self {
        self.plan = Some((plan, uses));
        self
    }

    /// How many elements the slice has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the slice has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Which elements [`SharedSlice::part`] lends to this member: [`split_blocks`](Team::split_blocks)
    /// of the length, with the shares turned by what was [dealt](Self::dealt_after) before.
    #[must_use]
    pub fn range(&self, team: &Team<'_>) -> Range<usize> {
        self.share(team, self.len)
    }

    /// This member's share of the first `len` elements.
    fn share(&self, team: &Team<'_>, len: usize) -> Range<usize> {
        let (index, size) = (team.index(), team.size());
        let share = (index + size - self.dealt % size) % size;
        split::split_blocks(len, self.block, share, size)
    }

    /// This member's own share of the slice, once per phase: the elements of [`SharedSlice::range`].
    ///
    /// # Panics
    ///
    /// Panics if this member took its share in this phase already, if the slice is used in another
    /// way in this phase, or if it belongs to another dispatch.
    #[allow(clippy::mut_from_ref, reason = "the checks make the loan exclusive, see the proof")]
    pub fn part<'t>(&'t self, team: &'t Team<'_>) -> &'t mut [T] {
        self.agree(team, Mode::Parts);
        self.take_once(team);
        let range = self.range(team);
        // SAFETY: the shares of a team's members are disjoint, and all members of this dispatch, by
        // `agree`, get only such shares in this phase; this member gets its own once, by
        // `take_once`. See `lend`.
        unsafe { self.lend(range) }
    }

    /// This member's own share of the first `len` elements, once per phase, where a dispatch does not
    /// always fill the slice: the elements of [`SharedSlice::range_of`].
    ///
    /// All members name the same `len`, a whole number of blocks.
    ///
    /// # Panics
    ///
    /// Panics as [`SharedSlice::part`]; if another member named another length in this phase; if `len` is
    /// beyond the slice, not whole blocks, or more than 2^24 - 2 blocks.
    #[allow(clippy::mut_from_ref, reason = "the checks make the loan exclusive, see the proof")]
    pub fn part_of<'t>(&'t self, team: &'t Team<'_>, len: usize) -> &'t mut [T] {
        let range = self.range_of(team, len);
        assert!(
            self.plan.is_none() || len == self.len,
            "a planned slice is split as a whole: expected {} elements, found {len}",
            self.len
        );
        // One more than the blocks: a field of 0 stands for the whole slice.
        self.agree_on(team, Mode::Parts, len / self.block + 1);
        self.take_once(team);
        // SAFETY: the shares of a team's members of one length are disjoint, and all members of this
        // dispatch, by `agree_on`, get only shares of this length in this phase; this member gets its
        // own once, by `take_once`. See `lend`.
        unsafe { self.lend(range) }
    }

    /// Which elements [`SharedSlice::part_of`] lends to this member.
    ///
    /// # Panics
    ///
    /// Panics if `len` is beyond the slice, not whole blocks, or more than 2^24 - 2 blocks.
    #[must_use]
    pub fn range_of(&self, team: &Team<'_>, len: usize) -> Range<usize> {
        let blocks = len / self.block;
        assert!(
            len <= self.len && len.is_multiple_of(self.block) && blocks < MAX_BLOCKS,
            "expected a length of whole blocks of {} within 0..={}, found {len}",
            self.block,
            self.len
        );
        self.share(team, len)
    }

    /// The next block that no member has got in this phase, with its number; `None` when all are
    /// out. For items of uneven cost.
    ///
    /// # Panics
    ///
    /// Panics if the slice is used in another way in this phase, if it belongs to another dispatch,
    /// or if it has more than 2^24 - 1 blocks.
    #[allow(clippy::mut_from_ref, reason = "the checks make the loan exclusive, see the proof")]
    pub fn next_block<'t>(&'t self, team: &'t Team<'_>) -> Option<(usize, &'t mut [T])> {
        let blocks = self.len.div_ceil(self.block);
        assert!(
            blocks <= MAX_BLOCKS,
            "a shared slice hands out at most {MAX_BLOCKS} blocks, found {blocks}"
        );
        let mut state = self.agree(team, Mode::Blocks);
        while state.blocks() < blocks {
            let next = state.with_one_more_block();
            let change = self.state.compare_exchange_weak(
                state.0,
                next.0,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match change {
                Ok(_) => {
                    let block = state.blocks();
                    let start = block * self.block;
                    let end = start.saturating_add(self.block).min(self.len);
                    // SAFETY: the exchange gave block number `block` to this call alone, and all
                    // members of this dispatch, by `agree`, get only blocks in this phase; blocks
                    // of different numbers are disjoint. See `lend`.
                    return Some((block, unsafe { self.lend(start..end) }));
                }
                // Nobody can have changed the mode: this member is still in the phase.
                Err(now) => state = Use(now),
            }
        }
        None
    }

    /// The element whose index is this member's, once per phase. For results and scratch, one
    /// element per member.
    ///
    /// # Panics
    ///
    /// Panics if the slice has fewer elements than the team has members, or as [`SharedSlice::part`].
    #[allow(clippy::mut_from_ref, reason = "the checks make the loan exclusive, see the proof")]
    pub fn own<'t>(&'t self, team: &'t Team<'_>) -> &'t mut T {
        assert!(
            team.size() <= self.len,
            "a slice with an element for each of {} members is needed, found {} elements",
            team.size(),
            self.len
        );
        self.agree(team, Mode::Own);
        self.take_once(team);
        // SAFETY: the index is below the length, as asserted; no other member of this dispatch has
        // it, and all members, by `agree`, get only their own element in this phase; this member
        // gets it once, by `take_once`. See `lend`.
        unsafe { &mut self.lend(team.index()..team.index() + 1)[0] }
    }

    /// The whole slice, for a phase in which one member alone uses it, once.
    ///
    /// # Panics
    ///
    /// Panics if any member, this one included, has used the slice in this phase already, or if it
    /// belongs to another dispatch. A member that comes later gets the panic instead.
    #[allow(clippy::mut_from_ref, reason = "the checks make the loan exclusive, see the proof")]
    pub fn whole<'t>(&'t self, team: &'t Team<'_>) -> &'t mut [T] {
        assert!(self.plan.is_none(), "no plan has a use for a whole slice");
        let (phase, state) = self.look(team);
        let new = Use::new(phase, Mode::Whole);
        if state.is_in_phase(phase) || !self.change(state, new) {
            misuse(Mode::Whole, Use(self.state.load(Ordering::Relaxed)));
        }
        // SAFETY: only the exchange that starts a phase leads here, so once per phase, and every
        // other use in this phase then finds another mode and is refused. See `lend`.
        unsafe { self.lend(0..self.len) }
    }

    /// The whole slice, to read, as often as needed and by any number of members.
    ///
    /// # Panics
    ///
    /// Panics if the slice is used in another way in this phase, or if it belongs to another
    /// dispatch.
    #[must_use]
    pub fn read<'t>(&'t self, team: &'t Team<'_>) -> &'t [T]
    where
        T: Sync,
    {
        self.agree(team, Mode::Read);
        // SAFETY: the pointer and length are those of the slice that this value borrows for 'a, which
        // outlives 't. All members of this dispatch, by `agree`, only read in this phase; loans of
        // earlier phases ended at a barrier, which also makes their writes visible.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }

    /// Binds the slice to the team's dispatch, and returns the phase and the use agreed on last.
    #[inline]
    fn look(&self, team: &Team<'_>) -> (u64, Use) {
        let (id, phase) = team.moment();
        bind(&self.owner, id);
        (phase, Use(self.state.load(Ordering::Relaxed)))
    }

    fn change(&self, from: Use, to: Use) -> bool {
        // Relaxed: within a phase the word only moves from older uses to the phase's one, and an
        // exchange always meets the newest value. What the loans themselves do is ordered by the
        // barriers between phases.
        self.state.compare_exchange(from.0, to.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Makes sure that all members use the slice as `mode` in this phase.
    #[inline]
    fn agree(&self, team: &Team<'_>, mode: Mode) -> Use {
        self.agree_on(team, mode, 0)
    }

    /// The same, and that they name the same number of blocks, where they do not count them.
    #[inline]
    fn agree_on(&self, team: &Team<'_>, mode: Mode, blocks: usize) -> Use {
        if let Some((plan, uses)) = self.plan {
            return follow(plan, uses, team, mode);
        }
        let (phase, mut state) = self.look(team);
        while !state.is_in_phase(phase) {
            let new = Use::new(phase, mode).with_blocks(blocks);
            if self.change(state, new) {
                return new;
            }
            state = Use(self.state.load(Ordering::Relaxed));
        }
        if state.mode() != mode as u64 {
            misuse(mode, state);
        }
        let counted = mode as u64 == Mode::Blocks as u64;
        assert!(
            counted || state.blocks() == blocks,
            "members of a team split a shared slice at the same length, found two in one phase"
        );
        state
    }

    #[inline]
    fn take_once(&self, team: &Team<'_>) {
        let fresh = team.taken().insert(std::ptr::from_ref(self).addr());
        assert!(
            fresh,
            "a member takes its share of a shared slice once per phase, found a second time"
        );
    }

    /// Lends elements to write.
    ///
    /// # Safety
    ///
    /// - `range` lies within `0..self.len`.
    /// - Until the next barrier of the dispatch that owns the slice nobody else is lent any of these
    ///   elements.
    ///
    /// The rest holds by construction: the slice was borrowed exclusively for 'a, which outlives 't;
    /// only members of one dispatch get here (`look`); a loan borrows its member's `Team`, which
    /// `Team::barrier` needs exclusively, so it ends before that member arrives at the next barrier,
    /// or with the closure; and the barrier orders what was done through it before what follows.
    #[allow(clippy::mut_from_ref, reason = "exclusive by the caller's obligation")]
    unsafe fn lend(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: the offset lies within the borrowed slice, as asserted.
        let start = unsafe { self.data.as_ptr().add(range.start) };
        // SAFETY: the elements lie within the borrowed slice, as asserted, and nobody else is lent
        // them, the caller's obligation.
        unsafe { std::slice::from_raw_parts_mut(start, range.len()) }
    }
}

/// Binds slices to a dispatch, by the word that names it.
#[inline]
fn bind(owner: &AtomicU64, id: u64) {
    if owner.load(Ordering::Relaxed) == id {
        return;
    }
    if let Err(owner) = owner.compare_exchange(0, id, Ordering::Relaxed, Ordering::Relaxed) {
        assert!(
            owner == id,
            "a shared slice serves one dispatch: expected dispatch {owner}, found {id}"
        );
    }
}

/// Makes sure that `mode` is what the plan says of this phase. All members of the one dispatch that the plan
/// serves read the same plan and count the same barriers, so they all use the slice in this way.
#[inline]
fn follow(plan: &Plan, uses: &[Planned], team: &Team<'_>, mode: Mode) -> Use {
    let (id, phase) = team.moment();
    bind(&plan.owner, id);
    let planned = usize::try_from(phase).ok().and_then(|phase| uses.get(phase)).copied();
    let fits = match planned {
        Some(Planned::Part) => matches!(mode, Mode::Parts),
        Some(Planned::Own) => matches!(mode, Mode::Own),
        Some(Planned::Read) => matches!(mode, Mode::Read),
        Some(Planned::Unused) | None => false,
    };
    assert!(fits, "phase {phase} plans {planned:?} for a shared slice, found a use as {mode:?}");
    Use::new(phase, mode)
}

/// Two ways to use a slice met in one phase.
#[cold]
fn misuse(wanted: Mode, found: Use) -> ! {
    let modes = [Mode::Parts, Mode::Blocks, Mode::Own, Mode::Whole, Mode::Read];
    let found = modes.into_iter().find(|&mode| mode as u64 == found.mode());
    let name = |mode| match mode {
        Mode::Parts => "part",
        Mode::Blocks => "next_block",
        Mode::Own => "own",
        Mode::Whole => "whole",
        Mode::Read => "read",
    };
    panic!(
        "a shared slice is used in one way between two barriers: `{}` was called after `{}`",
        name(wanted),
        found.map_or("nothing", name)
    )
}
