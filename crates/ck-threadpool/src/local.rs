//! What each thread remembers: whether it is inside a dispatch, and a stock of dispatch numbers.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many numbers a thread takes from the common stock at a time.
const STOCK: u64 = 1 << 16;

/// Where the next stock starts. Zero is no dispatch's number.
static NEXT_STOCK: AtomicU64 = AtomicU64::new(STOCK);

struct Local {
    inside: Cell<bool>,
    next_id: Cell<u64>,
}

#[cfg(not(loom))]
thread_local! {
    static LOCAL: Local = const { Local { inside: Cell::new(false), next_id: Cell::new(0) } };
}

#[cfg(loom)]
loom::thread_local! {
    static LOCAL: Local = Local { inside: Cell::new(false), next_id: Cell::new(0) };
}

/// A number that no other dispatch of this process has or will have.
pub(crate) fn next_id() -> u64 {
    LOCAL.with(|local| {
        let mut id = local.next_id.get();
        if id.is_multiple_of(STOCK) {
            id = NEXT_STOCK.fetch_add(STOCK, Ordering::Relaxed) + 1;
        }
        local.next_id.set(id + 1);
        id
    })
}

/// Whether this thread runs a dispatch's closure, of any pool.
pub(crate) fn inside() -> bool {
    LOCAL.with(|local| local.inside.get())
}

/// Marks this thread as inside a dispatch until the value is dropped.
pub(crate) fn enter() -> Inside {
    Inside { before: LOCAL.with(|local| local.inside.replace(true)) }
}

pub(crate) struct Inside {
    before: bool,
}

impl Drop for Inside {
    fn drop(&mut self) {
        LOCAL.with(|local| local.inside.set(self.before));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn dispatch_numbers_are_unique_over_threads_and_stocks() {
        let take = || (0..2 * STOCK + 10).map(|_| next_id()).collect::<Vec<_>>();
        let mut all = take();
        std::thread::scope(|scope| {
            let others: Vec<_> = (0..2).map(|_| scope.spawn(take)).collect();
            for other in others {
                all.extend(other.join().unwrap());
            }
        });
        assert!(!all.contains(&0));
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }

    #[test]
    fn leaving_an_inner_dispatch_stays_inside_the_outer_one() {
        assert!(!inside());
        let outer = enter();
        drop(enter());
        assert!(inside());
        drop(outer);
        assert!(!inside());
    }
}
