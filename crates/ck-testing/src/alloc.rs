//! An allocator that counts.
//!
//! A test binary installs it and asks how much a call allocated:
//!
//! ```
//! use ck_testing::alloc::CountingAllocator;
//!
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator::new();
//!
//! # fn main() {
//! let (numbers, used) = ALLOCATOR.on_this_thread(|| vec![0u8; 100]);
//! assert_eq!(numbers.len(), 100);
//! assert_eq!((used.count, used.peak_bytes), (1, 100));
//! # }
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The system's allocator, counting what passes through it.
#[derive(Debug)]
pub struct CountingAllocator {
    count: AtomicU64,
    live: AtomicI64,
    peak: AtomicI64,
    /// One measurement of the process at a time.
    measuring: Mutex<()>,
}

/// What was allocated during a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocated {
    /// How often memory was asked for, in vain or not; growing a block counts once.
    pub count: u64,
    /// The most bytes that were held at a time beyond those held before.
    pub peak_bytes: u64,
}

#[derive(Clone, Copy)]
struct ThreadTotals {
    count: u64,
    live: i64,
    peak: i64,
}

thread_local! {
    // No destructor and a constant initializer, so that reaching it never allocates.
    static THREAD: Cell<ThreadTotals> = const { Cell::new(ThreadTotals { count: 0, live: 0, peak: 0 }) };
}

impl CountingAllocator {
    /// An allocator that has counted nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            count: AtomicU64::new(0),
            live: AtomicI64::new(0),
            peak: AtomicI64::new(0),
            measuring: Mutex::new(()),
        }
    }

    /// Runs a closure and says what the calling thread allocated in it. Other tests of the same binary do not
    /// disturb the numbers; nor do other threads of the closure's own take part.
    ///
    /// # Panics
    ///
    /// If this allocator is not installed as the global one.
    pub fn on_this_thread<R>(&self, run: impl FnOnce() -> R) -> (R, Allocated) {
        self.assert_installed();
        let before = THREAD.get();
        THREAD.set(ThreadTotals { peak: before.live, ..before });
        let result = run();
        let after = THREAD.get();
        // A measurement around this one goes on with the higher peak.
        THREAD.set(ThreadTotals { peak: before.peak.max(after.peak), ..after });
        (result, allocated(after.count - before.count, after.peak - before.live))
    }

    /// Runs a closure and says what all threads of the process allocated meanwhile: for calls that use a pool. The test
    /// must be alone in its process, or in its binary with the others waiting. Not to be nested.
    ///
    /// # Panics
    ///
    /// If this allocator is not installed as the global one.
    pub fn in_process<R>(&self, run: impl FnOnce() -> R) -> (R, Allocated) {
        self.assert_installed();
        let guard = self.measuring.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let count = self.count.load(Ordering::SeqCst);
        let live = self.live.load(Ordering::SeqCst);
        self.peak.store(live, Ordering::SeqCst);
        let result = run();
        let used = allocated(
            self.count.load(Ordering::SeqCst) - count,
            self.peak.load(Ordering::SeqCst) - live,
        );
        drop(guard);
        (result, used)
    }

    /// A counter that is not installed would find that nothing ever allocates.
    fn assert_installed(&self) {
        let before = self.count.load(Ordering::SeqCst);
        drop(black_box(Box::new(black_box(0u8))));
        let counted = self.count.load(Ordering::SeqCst) > before;
        assert!(
            counted,
            "this CountingAllocator is not the #[global_allocator], it counts nothing"
        );
    }

    /// Counts a request, and its bytes if it was met.
    fn record(&self, block: *mut u8, bytes: i64) -> *mut u8 {
        self.add(1, if block.is_null() { 0 } else { bytes });
        block
    }

    fn add(&self, allocations: u64, bytes: i64) {
        self.count.fetch_add(allocations, Ordering::SeqCst);
        let live = self.live.fetch_add(bytes, Ordering::SeqCst) + bytes;
        self.peak.fetch_max(live, Ordering::SeqCst);
        let totals = THREAD.get();
        let live = totals.live + bytes;
        let count = totals.count + allocations;
        THREAD.set(ThreadTotals { count, live, peak: totals.peak.max(live) });
    }
}

impl Default for CountingAllocator {
    fn default() -> Self {
        Self::new()
    }
}

fn allocated(count: u64, peak: i64) -> Allocated {
    Allocated { count, peak_bytes: peak.max(0) as u64 }
}

// SAFETY: every method hands its arguments unchanged to `System`, which is a `GlobalAlloc`, and returns what that
// returned. Recording touches atomics and a thread-local cell without destructor; it does not allocate. It does
// not unwind either: only memory that was really given out is added, which cannot exceed an `i64`.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout is not zero-sized, as this method's contract says; `System` asks the same.
        let block = unsafe { System.alloc(layout) };
        self.record(block, layout.size() as i64)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout is not zero-sized, as this method's contract says; `System` asks the same.
        let block = unsafe { System.alloc_zeroed(layout) };
        self.record(block, layout.size() as i64)
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: every block of this allocator came from `System` with the layout it was asked for, and the
        // caller promises that `block` and `layout` belong together and that `new_size` is a valid size.
        let block = unsafe { System.realloc(block, layout, new_size) };
        self.record(block, new_size as i64 - layout.size() as i64)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.add(0, -(layout.size() as i64));
        // SAFETY: every block of this allocator came from `System` with the layout it was asked for, and the
        // caller promises that `block` and `layout` belong together.
        unsafe { System.dealloc(block, layout) }
    }
}
