//! Items that members take as they come free.

use crate::sync::{AtomicUsize, Ordering};
use crossbeam_utils::CachePadded;

/// A count of work items from which the members of a team take one after the other, for items of
/// uneven cost.
///
/// One counter serves one loop: made before the dispatch, it is used up by it. For outputs, see
/// [`SharedSlice::next_block`](crate::SharedSlice::next_block), which lends the item's block as well.
///
/// ```
/// use ck_threadpool::{ThreadPool, WorkCounter};
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let pool = ThreadPool::new(2)?;
/// let (items, sum) = (WorkCounter::new(100), AtomicUsize::new(0));
/// pool.run(|_| {
///     while let Some(item) = items.next() {
///         sum.fetch_add(item, Ordering::Relaxed);
///     }
/// });
/// assert_eq!(sum.into_inner(), 4950);
/// # Ok::<(), ck_threadpool::BuildError>(())
/// ```
#[derive(Debug)]
pub struct WorkCounter {
    next: CachePadded<AtomicUsize>,
    items: usize,
}

impl WorkCounter {
    /// A counter of the items `0..items`.
    #[must_use]
    pub fn new(items: usize) -> Self {
        Self { next: CachePadded::new(AtomicUsize::new(0)), items }
    }

    /// The next item that nobody has taken.
    #[allow(clippy::should_implement_trait, reason = "an iterator needs &mut self, this is shared")]
    pub fn next(&self) -> Option<usize> {
        // The first look keeps calls after the end from counting on, and so from ever wrapping.
        if self.next.load(Ordering::Relaxed) >= self.items {
            return None;
        }
        let item = self.next.fetch_add(1, Ordering::Relaxed);
        (item < self.items).then_some(item)
    }

    /// Starts again at the first item.
    pub fn reset(&mut self) {
        *self = Self::new(self.items);
    }
}
