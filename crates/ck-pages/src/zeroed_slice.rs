//! The slice, and the one place that allocates for it.

use crate::PagesError;
use bytemuck::Pod;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Bytes of a line of the cache, the least alignment of a slice.
pub const CACHE_LINE: usize = 64;

/// Bytes of a large page of x86-64, and of AArch64 with base pages of 4 KiB.
pub const LARGE_PAGE: usize = 2 << 20;

/// A fixed number of elements, zero at first, aligned to a cache line; to a large page where they fill at
/// least one, and then the system is asked to use such pages.
///
/// Data that is read from end to end needs a page walk for every 64 lines with pages of 4 KiB, which
/// can cost more than the reading.
///
/// The memory is asked for zeroed and with a small alignment, which is what lets an allocator hand out pages that nobody
/// has touched; one with a large alignment would be zeroed by hand. The start is moved up inside of it.
/// So a slice costs its size in addresses at once, and in memory only what is touched, in whole pages. Where large pages
/// are granted, that is up to 2 MiB more than was touched.
pub struct ZeroedSlice<T> {
    start: NonNull<T>,
    len: usize,
    taken: usize,
    /// What the allocator gave.
    allocation: NonNull<u8>,
    layout: Layout,
    owns: PhantomData<T>,
}

impl<T: Pod> ZeroedSlice<T> {
    /// `len` zeroed elements. The last large page is made a whole one where that takes no more than an
    /// eleventh of the slice.
    ///
    /// # Errors
    ///
    /// [`PagesError::TooLarge`] and [`PagesError::Refused`].
    pub fn new(len: usize) -> Result<Self, PagesError> {
        const { assert!(align_of::<T>() <= CACHE_LINE, "elements that fit a cache line's alignment") };
        let too_large = PagesError::TooLarge { len, element_bytes: size_of::<T>() };
        let bytes = len.checked_mul(size_of::<T>()).ok_or(too_large)?;
        let align = if bytes >= LARGE_PAGE { LARGE_PAGE } else { CACHE_LINE };
        let whole = bytes.checked_next_multiple_of(align).ok_or(too_large)?;
        let fills = align == LARGE_PAGE && whole - bytes <= bytes / 11;
        let taken = if fills { whole } else { bytes };
        let size = taken.checked_add(align).ok_or(too_large)?;
        let layout = Layout::from_size_align(size, 1).map_err(|_| too_large)?;
        // SAFETY: the layout's size is at least `align`, so it is not zero.
        let allocation = NonNull::new(unsafe { alloc_zeroed(layout) });
        let allocation = allocation.ok_or(PagesError::Refused { bytes: size })?;
        let before = allocation.addr().get().next_multiple_of(align) - allocation.addr().get();
        // SAFETY: `before` is below `align`, and the allocation has `taken + align` bytes.
        let start = unsafe { allocation.add(before) };
        if align == LARGE_PAGE {
            ask_for_large_pages(start, taken);
        }
        let owns = PhantomData;
        Ok(Self { start: start.cast(), len, taken, allocation, layout, owns })
    }
}

impl<T> ZeroedSlice<T> {
    /// The bytes that the slice takes once all of it was touched.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.taken
    }
}

/// Tells the kernel, before the memory is first touched, that large pages are welcome. That it may refuse
/// changes no result, so its answer is not looked at.
#[cfg(target_os = "linux")]
fn ask_for_large_pages(start: NonNull<u8>, len: usize) {
    // SAFETY: `start..start + len` is within an allocation of the caller's, and MADV_HUGEPAGE changes how its
    // pages are backed, never what they hold.
    unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages(_start: NonNull<u8>, _len: usize) {}

impl<T> Deref for ZeroedSlice<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `new`, the only constructor, found place for `len` elements at `start`, which is aligned to a
        // cache line and so for `T`; their bytes were zeroed, which is a value of `T: Pod`. They live as long as
        // `self`, and are changed only through `deref_mut`, which borrows `self` exclusively.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for ZeroedSlice<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T> Drop for ZeroedSlice<T> {
    fn drop(&mut self) {
        // SAFETY: `new` got `allocation` from `alloc_zeroed` with this very layout, and it is given back only here.
        // The elements are `Pod`, by the bound of `new`, and need no drop.
        unsafe { dealloc(self.allocation.as_ptr(), self.layout) };
    }
}

// SAFETY: the slice owns its elements like a `Box<[T]>`; the pointers are shared with nothing.
unsafe impl<T: Send> Send for ZeroedSlice<T> {}

// SAFETY: a shared `ZeroedSlice` only hands out shared slices.
unsafe impl<T: Sync> Sync for ZeroedSlice<T> {}

impl<T> fmt::Debug for ZeroedSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZeroedSlice").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_zeroed_and_aligned() {
        for len in [0, 1, 63, 64, 65, LARGE_PAGE - 1, LARGE_PAGE, LARGE_PAGE + 1, 5 * LARGE_PAGE] {
            let mut bytes = ZeroedSlice::<u8>::new(len).unwrap();
            assert_eq!(bytes.len(), len);
            assert!(bytes.iter().all(|byte| *byte == 0));
            let align = if len >= LARGE_PAGE { LARGE_PAGE } else { CACHE_LINE };
            assert_eq!(bytes.as_ptr().addr() % align, 0, "{len}");
            bytes.fill(7);
            assert!(bytes.iter().all(|byte| *byte == 7));
        }
        for len in [0, 1, 15, 16, 1000, LARGE_PAGE / 4] {
            let numbers = ZeroedSlice::<f32>::new(len).unwrap();
            assert_eq!(numbers.len(), len);
            assert!(numbers.iter().all(|number| number.to_bits() == 0));
        }
    }

    #[test]
    fn memory_that_was_used_before_is_zeroed_again() {
        for len in [1000, LARGE_PAGE + 5] {
            for _ in 0..10 {
                let mut bytes = ZeroedSlice::<u8>::new(len).unwrap();
                assert!(bytes.iter().all(|byte| *byte == 0));
                bytes.fill(255);
            }
        }
    }

    #[test]
    fn the_last_large_page_is_whole_where_that_takes_little() {
        let bytes = |len| ZeroedSlice::<u8>::new(len).unwrap().bytes();
        assert_eq!(bytes(2 * LARGE_PAGE - 7), 2 * LARGE_PAGE);
        assert_eq!(bytes(11 * LARGE_PAGE / 2), 6 * LARGE_PAGE);
        assert_eq!(bytes(11 * LARGE_PAGE / 2 - 11), 11 * LARGE_PAGE / 2 - 11);
        assert_eq!(bytes(LARGE_PAGE + 32), LARGE_PAGE + 32);
        assert_eq!((bytes(0), bytes(100)), (0, 100));
    }

    #[test]
    fn more_than_there_is_are_errors() {
        for len in [usize::MAX, usize::MAX / 4, isize::MAX as usize / 4] {
            let expected = PagesError::TooLarge { len, element_bytes: 4 };
            assert_eq!(ZeroedSlice::<f32>::new(len).unwrap_err(), expected);
        }
        let refused = ZeroedSlice::<f32>::new(isize::MAX as usize / 8).unwrap_err();
        assert!(matches!(refused, PagesError::Refused { .. }), "{refused}");
    }

    #[test]
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    fn addresses_cost_no_memory() {
        let (count, len) = (16, 64 << 20);
        let mut slices: Vec<_> = (0..count).map(|_| ZeroedSlice::<u8>::new(len).unwrap()).collect();
        let resident = || {
            let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
            statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
        };
        let before = resident();
        slices.iter_mut().for_each(|slice| slice[12_345] = 1);
        // Large pages are 1/32 of it, and a sanitizer's shadow memory 1/8.
        assert!(resident().saturating_sub(before) <= count * len / 2);
        assert!(slices.iter().all(|slice| slice[12_345] == 1));
    }
}
