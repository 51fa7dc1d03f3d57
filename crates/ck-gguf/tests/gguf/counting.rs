//! An allocator that counts, so that a test can say how much memory a call took.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that this thread allocated and did not free (below zero if it freed what others
    /// allocated), and the largest such number since it was last set.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, counting what each thread holds.
struct Counting;

// SAFETY: every call is passed on to `System` unchanged, and only counters are touched beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.get() + layout.size() as isize;
        LIVE.set(live);
        PEAK.set(PEAK.get().max(live));
        // SAFETY: the caller of this function promises what `System.alloc` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size() as isize);
        // SAFETY: `pointer` came from `alloc` above, so from `System`, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `call` returns, and the most bytes that this thread held during the call beyond what it held before.
pub(crate) fn peak<R>(call: impl FnOnce() -> R) -> (R, isize) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = call();
    (result, PEAK.get() - before)
}

#[test]
fn the_allocator_of_these_tests_counts() {
    let before = LIVE.get();
    let ((), held) = peak(|| drop(std::hint::black_box(Vec::<u8>::with_capacity(5000))));
    assert_eq!((LIVE.get(), held), (before, 5000));
}
