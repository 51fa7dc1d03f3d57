//! Memory for packed weights, in large pages where the system has them.

use std::alloc::{Layout, alloc, dealloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A line of the cache, the least alignment.
const LINE: usize = 64;

/// A large page of x86-64, and of AArch64 with base pages of 4 KiB.
const LARGE_PAGE: usize = 2 << 20;

/// A fixed number of bytes, aligned to a cache line; to a large page where they fill at least one, and then
/// the system is asked to use such pages.
///
/// Weights are read once per token from end to end. With pages of 4 KiB that is a page walk for every
/// 64 lines; docs/benchmarking.md has what it costs.
pub(crate) struct Pages {
    start: NonNull<u8>,
    len: usize,
    layout: Layout,
}

impl Pages {
    /// `len` zero bytes, or `None` where there is not so much memory. Up to `most` bytes may be taken where
    /// that makes the last large page a whole one.
    pub(crate) fn zeroed(len: usize, most: usize) -> Option<Self> {
        let align = if len >= LARGE_PAGE { LARGE_PAGE } else { LINE };
        let whole = len.checked_next_multiple_of(align)?;
        let size = if whole <= most { whole } else { len };
        let layout = Layout::from_size_align(size.max(LINE), align).ok()?;
        // SAFETY: the layout's size is at least LINE, so it is not zero.
        let start = NonNull::new(unsafe { alloc(layout) })?;
        if align == LARGE_PAGE {
            ask_for_large_pages(start, layout.size());
        }
        // SAFETY: `start` was just allocated with `layout.size()` bytes, and nothing else knows it.
        unsafe { start.write_bytes(0, layout.size()) };
        Some(Self { start, len, layout })
    }

    /// The bytes that are taken from the system.
    pub(crate) fn taken(&self) -> usize {
        self.layout.size()
    }
}

/// Tells the kernel, before the memory is first touched, that large pages are welcome. That it may refuse
/// changes no result, so its answer is not looked at.
#[cfg(target_os = "linux")]
fn ask_for_large_pages(start: NonNull<u8>, len: usize) {
    // SAFETY: `start..start + len` is an allocation of the caller's, and MADV_HUGEPAGE changes how its
    // pages are backed, never what they hold.
    unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages(_start: NonNull<u8>, _len: usize) {}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `zeroed` allocated at least `len` bytes at `start` and wrote all of them; they live as
        // long as `self`, and are changed only through `deref_mut`, which borrows `self` exclusively.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: `zeroed` got `start` from `alloc` with this very layout, and it is given back only here.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

// SAFETY: `Pages` owns its bytes like a `Box<[u8]>`; the pointer is shared with nothing.
unsafe impl Send for Pages {}

// SAFETY: a shared `Pages` only hands out shared slices.
unsafe impl Sync for Pages {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_zeroed_and_aligned() {
        for len in [0, 1, 63, 64, 65, LARGE_PAGE - 1, LARGE_PAGE, LARGE_PAGE + 1, 5 * LARGE_PAGE] {
            let mut pages = Pages::zeroed(len, len).unwrap();
            assert_eq!(pages.len(), len);
            assert!(pages.iter().all(|byte| *byte == 0));
            let align = if len >= LARGE_PAGE { LARGE_PAGE } else { LINE };
            assert_eq!(pages.as_ptr().align_offset(align), 0, "{len}");
            pages.fill(7);
            assert!(pages.iter().all(|byte| *byte == 7));
        }
    }

    #[test]
    fn the_last_large_page_is_whole_where_that_is_allowed() {
        let len = 2 * LARGE_PAGE - 7;
        assert_eq!(Pages::zeroed(len, 2 * LARGE_PAGE).unwrap().taken(), 2 * LARGE_PAGE);
        assert_eq!(Pages::zeroed(len, 2 * LARGE_PAGE - 1).unwrap().taken(), len);
        assert_eq!(Pages::zeroed(100, 1 << 20).unwrap().taken(), 128);
    }

    #[test]
    fn more_than_there_is_gives_nothing() {
        assert!(Pages::zeroed(usize::MAX, usize::MAX).is_none());
        assert!(Pages::zeroed(isize::MAX as usize - LARGE_PAGE, 0).is_none());
    }
}
