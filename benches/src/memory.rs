//! Buffers in pages of a chosen size, and the plain loop that reads them: the limit that memory sets.

use crate::contender::{Agreement, Contender, Side};
use ck_isa::Isa;
use ck_threadpool::ThreadPool;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::rc::Rc;

/// The size of the pages that back a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// The system's base pages, 4 KiB on x86-64.
    Base,
    /// Large pages, 2 MiB on x86-64, where the system grants them.
    Large,
}

impl PageKind {
    /// The name in tables and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "4K pages",
            Self::Large => "2M pages",
        }
    }

    /// What memory of the heap gets where this kind is allowed: small pieces have no large pages, unless the heap
    /// itself was told to have them.
    #[must_use]
    pub fn of_heap(self, bytes: usize) -> Self {
        if bytes < LARGE_PAGE && !heap_has_large_pages() { Self::Base } else { self }
    }
}

/// What tells glibc to lay out its heap in large pages, also for what is small, instead of mapping it piece by piece.
const HEAP: (&str, &str) =
    ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432");

/// Whether the heap was told to have large pages.
fn heap_has_large_pages() -> bool {
    std::env::var_os(HEAP.0).is_some_and(|value| value == HEAP.1)
}

/// Starts this program again with a heap in large pages, where the system has that: so that everything of a contender
/// is in the same kind of pages. It returns in the program that has such a heap, or where there is none.
pub fn restart_with_large_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if std::env::var_os(HEAP.0).is_none() {
        use std::os::unix::process::CommandExt;
        let Ok(program) = std::env::current_exe() else { return };
        let mut command = std::process::Command::new(program);
        let error = command.args(std::env::args_os().skip(1)).env(HEAP.0, HEAP.1).exec();
        eprintln!("cannot start again with a heap in large pages: {error}");
    }
}

/// Gives free memory of the heap back, so that what comes next gets pages of its own kind. It splits large pages that
/// are free in part, so it is for moments when little else is there.
pub fn trim_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it has no precondition, and touches only what is free.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Bytes of a large page, and the alignment of every buffer.
const LARGE_PAGE: usize = 2 << 20;

/// Zeroed bytes in pages of a chosen kind, in a mapping of their own: no other memory has had these pages.
pub struct Buffer {
    start: NonNull<u8>,
    len: usize,
    size: usize,
}

impl Buffer {
    /// `len` bytes in pages of `kind`.
    ///
    /// # Panics
    ///
    /// If the memory is not to be had.
    #[must_use]
    pub fn new(len: usize, kind: PageKind) -> Self {
        let size = len.max(1).next_multiple_of(LARGE_PAGE);
        let start = system::map(size, kind).expect("memory for a benchmark");
        // SAFETY: `start` was just mapped with `size` writable bytes, and nothing else knows it.
        unsafe { start.write_bytes(0, size) };
        Self { start, len, size }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use super::{LARGE_PAGE, NonNull, PageKind};

    /// Maps `size` bytes at a multiple of a large page.
    pub(super) fn map(size: usize, kind: PageKind) -> Option<NonNull<u8>> {
        let (access, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let whole = size + LARGE_PAGE;
        // SAFETY: a new anonymous mapping, at an address of the system's choice, touches no other memory.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), whole, access, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return None;
        }
        let mapped = mapped.cast::<u8>();
        let before = mapped.align_offset(LARGE_PAGE);
        let start = mapped.wrapping_add(before);
        if before > 0 {
            // SAFETY: the part before `start` is of the mapping just made, and nobody knows it.
            unsafe { libc::munmap(mapped.cast(), before) };
        }
        if before < LARGE_PAGE {
            // SAFETY: the part after `start..start + size` is of the mapping just made, and nobody knows it.
            unsafe { libc::munmap(start.wrapping_add(size).cast(), LARGE_PAGE - before) };
        }
        let advice = match kind {
            PageKind::Base => libc::MADV_NOHUGEPAGE,
            PageKind::Large => libc::MADV_HUGEPAGE,
        };
        // SAFETY: the range is what is left of the mapping; the advice changes how its pages are backed, never
        // what they hold.
        unsafe { libc::madvise(start.cast(), size, advice) };
        NonNull::new(start)
    }

    /// Unmaps what `map` mapped.
    ///
    /// # Safety
    ///
    /// - `start` and `size` are those of one call of `map`, and nobody uses this memory again.
    pub(super) unsafe fn unmap(start: NonNull<u8>, size: usize) {
        // SAFETY: by this function's own conditions.
        unsafe { libc::munmap(start.as_ptr().cast(), size) };
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{LARGE_PAGE, NonNull, PageKind};
    use std::alloc::{Layout, alloc, dealloc};

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, LARGE_PAGE).expect("a size below isize::MAX")
    }

    /// Allocates `size` bytes, which are not zero, at a multiple of a large page.
    pub(super) fn map(size: usize, _kind: PageKind) -> Option<NonNull<u8>> {
        // SAFETY: the size is at least LARGE_PAGE, so it is not zero.
        NonNull::new(unsafe { alloc(layout(size)) })
    }

    /// Frees what `map` allocated.
    ///
    /// # Safety
    ///
    /// - `start` and `size` are those of one call of `map`, and nobody uses this memory again.
    pub(super) unsafe fn unmap(start: NonNull<u8>, size: usize) {
        // SAFETY: by this function's own conditions, `map` got `start` from `alloc` with this layout.
        unsafe { dealloc(start.as_ptr(), layout(size)) };
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `new` mapped and wrote at least `len` bytes, which live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: `new` got `start` from `map` with this very size, and it is given back only here.
        unsafe { system::unmap(self.start, self.size) };
    }
}

/// Runs `f` so that memory which it allocates and touches has pages of `kind`, whatever it asks for; large ones as far
/// as the heap has them.
pub fn with_pages<R>(kind: PageKind, f: impl FnOnce() -> R) -> R {
    large_pages_allowed(kind == PageKind::Large);
    let result = f();
    large_pages_allowed(true);
    result
}

/// Tells the system whether this process may have large pages from now on.
#[cfg(target_os = "linux")]
fn large_pages_allowed(allowed: bool) {
    // SAFETY: this option takes a flag and no pointer; it changes how later pages are backed, never what
    // they hold.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, libc::c_ulong::from(!allowed), 0, 0, 0) };
}

#[cfg(not(target_os = "linux"))]
fn large_pages_allowed(_allowed: bool) {}

/// How many bytes of copies make data stream from memory: 256 MiB, or four times the last cache where that is more,
/// but not more than 512 MiB.
///
/// A virtual machine may report the cache of its whole host. Other contenders' copies are read between two turns
/// of one, so what was read last is long gone all the same.
#[must_use]
pub fn streamed_bytes() -> usize {
    let cache = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index3/size");
    let kib = cache.ok().and_then(|size| size.trim().strip_suffix('K')?.parse::<usize>().ok());
    (4 * 1024 * kib.unwrap_or(0)).clamp(256 << 20, 512 << 20)
}

/// Copies of some bytes, one after the other, each at a cache line's start.
pub struct Copies {
    buffer: Rc<Buffer>,
    kind: PageKind,
    len: usize,
    stride: usize,
    count: usize,
}

impl Copies {
    /// `count` copies of `bytes` in pages of `kind`.
    #[must_use]
    pub fn new(bytes: &[u8], count: usize, kind: PageKind) -> Self {
        let stride = bytes.len().next_multiple_of(64);
        let mut buffer = Buffer::new(stride * count, kind);
        for copy in buffer.chunks_exact_mut(stride) {
            copy[..bytes.len()].copy_from_slice(bytes);
        }
        Self { buffer: Rc::new(buffer), kind, len: bytes.len(), stride, count }
    }

    /// As many windows of `len` bytes as a buffer in pages of `kind` has: at least one, and no longer than it.
    #[must_use]
    pub fn windows(buffer: &Rc<Buffer>, kind: PageKind, len: usize) -> Self {
        let stride = len.next_multiple_of(64).min(buffer.len());
        let count = buffer.len() / stride;
        Self { buffer: Rc::clone(buffer), kind, len: len.min(stride), stride, count }
    }

    /// Copy number `index`, taken modulo their number.
    #[must_use]
    pub fn get(&self, index: usize) -> &[u8] {
        let start = index % self.count * self.stride;
        &self.buffer[start..start + self.len]
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The kind of pages.
    #[must_use]
    pub fn kind(&self) -> PageKind {
        self.kind
    }
}

/// Reads every byte of the data once, and does as little as can be with it.
pub struct ReadLoop<'a> {
    copies: &'a Copies,
    isa: Isa,
    pool: Option<&'a ThreadPool>,
}

impl<'a> ReadLoop<'a> {
    /// A loop over the copies with the widest loads of `isa`, on this thread.
    #[must_use]
    pub fn new(copies: &'a Copies, isa: Isa) -> Self {
        Self { copies, isa, pool: None }
    }

    /// The same, each copy divided among the threads of a pool.
    #[must_use]
    pub fn on(mut self, pool: &'a ThreadPool) -> Self {
        self.pool = Some(pool).filter(|pool| pool.threads() > 1);
        self
    }
}

impl Contender for ReadLoop<'_> {
    fn name(&self) -> String {
        format!("read loop, {}", self.copies.kind().name())
    }

    fn side(&self) -> Side {
        Side::Limit
    }

    fn start(&mut self) {
        self.pool.inspect(|pool| pool.resume());
    }

    fn stop(&mut self) {
        self.pool.inspect(|pool| pool.pause());
    }

    fn run(&mut self, copy: usize) {
        let bytes = self.copies.get(copy);
        let isa = self.isa;
        match self.pool {
            None => _ = std::hint::black_box(sum(isa, bytes)),
            Some(pool) => pool.run(|team| {
                let part = team.split_blocks(bytes.len(), 4096);
                std::hint::black_box(sum(isa, &bytes[part]));
            }),
        }
    }

    fn answer(&self) -> Vec<f32> {
        Vec::new()
    }

    fn agreement(&self) -> Agreement {
        Agreement::None
    }
}

/// The sum of all words, with the widest loads of `isa`.
fn sum(isa: Isa, bytes: &[u8]) -> u64 {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::Avx512Vnni(_) => unsafe { sum_512(bytes) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the level's features, and the function enables no others.
        Isa::Avx2(_) => unsafe { sum_256(bytes) },
        _ => sum_words(bytes.as_chunks().0),
    }
}

/// The sum of all words, in eight chains of eight.
#[inline(always)]
fn sum_words(words: &[[u8; 8]]) -> u64 {
    let mut sums = [0u64; 64];
    let (chunks, rest) = words.as_chunks::<64>();
    for chunk in chunks {
        for (sum, word) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(u64::from_ne_bytes(*word));
        }
    }
    let rest = rest.iter().map(|word| u64::from_ne_bytes(*word));
    sums.into_iter().chain(rest).fold(0, u64::wrapping_add)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn sum_256(bytes: &[u8]) -> u64 {
    sum_words(bytes.as_chunks().0)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
fn sum_512(bytes: &[u8]) -> u64 {
    use ck_isa::load::x86::load512;
    use core::arch::x86_64::{_mm512_add_epi64, _mm512_reduce_add_epi64, _mm512_setzero_si512};
    let mut sums = [_mm512_setzero_si512(); 8];
    let (lines, rest) = bytes.as_chunks::<64>();
    let (chunks, more) = lines.as_chunks::<8>();
    for chunk in chunks {
        for (sum, line) in sums.iter_mut().zip(chunk) {
            *sum = _mm512_add_epi64(*sum, load512(line));
        }
    }
    let sum = sums.into_iter().fold(_mm512_setzero_si512(), |a, b| _mm512_add_epi64(a, b));
    let more = sum_words(bytemuck::cast_slice(more));
    (_mm512_reduce_add_epi64(sum) as u64)
        .wrapping_add(more)
        .wrapping_add(sum_words(rest.as_chunks().0))
}
