//! The counting allocator counts, per thread and per process. One test, since a measurement of the process
//! counts whatever the others do.

use ck_testing::alloc::{Allocated, CountingAllocator};
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

#[test]
fn allocations_and_the_peak_are_counted() {
    nothing_is_nothing();
    the_peak_is_what_was_held_at_once();
    growing_counts_once();
    a_request_in_vain_holds_nothing();
    measurements_nest();
    threads_are_kept_apart_and_added_up();
    an_allocator_that_is_not_installed_is_refused();
}

fn nothing_is_nothing() {
    let mut sum = 0u64;
    let ((), used) = ALLOCATOR.on_this_thread(|| (0..100).for_each(|i| sum = black_box(sum + i)));
    assert_eq!((sum, used), (4950, Allocated::default()));
}

fn the_peak_is_what_was_held_at_once() {
    let held = black_box(vec![1u8; 5000]);
    let ((), used) = ALLOCATOR.on_this_thread(|| {
        drop(black_box(vec![1u8; 1000]));
        drop(black_box(vec![0u8; 3000]));
        drop(black_box((vec![1u8; 500], vec![1u8; 600])));
        drop(held);
    });
    assert_eq!(used, Allocated { count: 4, peak_bytes: 3000 });
}

fn growing_counts_once() {
    let mut bytes = black_box(Vec::<u8>::with_capacity(100));
    let ((), used) = ALLOCATOR.on_this_thread(|| bytes.reserve_exact(black_box(300)));
    assert_eq!(used, Allocated { count: 1, peak_bytes: 200 });
}

fn a_request_in_vain_holds_nothing() {
    let mut bytes = Vec::<u8>::new();
    let (result, used) =
        ALLOCATOR.on_this_thread(|| bytes.try_reserve_exact(black_box(isize::MAX as usize)));
    assert!(result.is_err(), "no machine has that much memory");
    assert_eq!(used, Allocated { count: 1, peak_bytes: 0 });
}

fn measurements_nest() {
    let (inner, outer) = ALLOCATOR.on_this_thread(|| {
        let kept = black_box(vec![1u8; 10]);
        let ((), inner) = ALLOCATOR.on_this_thread(|| drop(black_box(vec![1u8; 700])));
        drop(kept);
        inner
    });
    assert_eq!(inner, Allocated { count: 1, peak_bytes: 700 });
    // The outer one also sees the probe of the inner measurement.
    assert_eq!(outer, Allocated { count: 3, peak_bytes: 710 });
}

fn threads_are_kept_apart_and_added_up() {
    let run = || {
        let worker = std::thread::spawn(|| drop(black_box(vec![1u8; 1 << 20])));
        worker.join().expect("the worker ends");
    };
    let ((), mine) = ALLOCATOR.on_this_thread(run);
    assert!(mine.peak_bytes < 1 << 20, "{mine:?}");
    let ((), all) = ALLOCATOR.in_process(run);
    assert!(all.peak_bytes >= 1 << 20 && all.count > mine.count, "{all:?} {mine:?}");
}

fn an_allocator_that_is_not_installed_is_refused() {
    let idle = CountingAllocator::new();
    assert!(std::panic::catch_unwind(|| idle.on_this_thread(|| ())).is_err());
    assert!(std::panic::catch_unwind(|| idle.in_process(|| ())).is_err());
}
