//! A dispatch allocates nothing.

#![cfg(not(loom))]

use ck_threadpool::{SharedSlice, ThreadPool, WorkCounter};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: hands every call on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller's obligation.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's obligation; `alloc` got the memory from the same allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn dispatches_barriers_and_shared_slices_allocate_nothing() {
    let pool = ThreadPool::new(4).unwrap();
    let mut data = vec![0; 1000];
    let mut round = || {
        for size in [4, 1, 2, 3] {
            let shared = SharedSlice::in_blocks(&mut data, 32);
            let counter = WorkCounter::new(10);
            let result = pool.try_run_on(size, |team| {
                shared.part(team).fill(team.index());
                team.barrier();
                assert!(shared.read(team).len() == 1000);
                while counter.next().is_some() {}
                team.single(|_| ());
                Ok::<(), ()>(())
            });
            assert_eq!(result, Ok(()));
        }
    };
    // The workers have started, and the test harness has printed what it prints.
    std::thread::sleep(std::time::Duration::from_millis(100));
    round();
    let before = ALLOCATIONS.load(Relaxed);
    (0..100).for_each(|_| round());
    assert_eq!(ALLOCATIONS.load(Relaxed), before);
}
