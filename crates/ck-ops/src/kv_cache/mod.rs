//! The keys and values of the positions decoded so far.
//!
//! # Layout
//!
//! The cache is a list of segments of [`CHUNK`] positions. Inside one it is head-major: for each KV head first
//! the keys, in panels of [`PANEL`] positions laid `[head_dim][PANEL]`, so that the lanes of a score are positions;
//! then the values, in blocks of [`DIM_BLOCK`] head dimensions laid `[CHUNK][DIM_BLOCK]`, so that the lanes of a
//! weighted sum are head dimensions. What a head does not fill of its last block is not there: its rows are
//! narrower. Attention so reads one long run of memory per chunk and head, in rows whose length the compiler
//! knows. Element types with scales keep them in a second array, one for every position and [`DIM_BLOCK`]
//! dimensions: keys `[head_dim / DIM_BLOCK][PANEL]` for each panel, values `[CHUNK]` for each block.

mod append;
mod copy;
mod element;
mod f16;
mod load;
mod new_position;
mod q8_0;
mod save;
mod saved;
mod segment;
mod shape;
#[cfg(test)]
mod tests;

use crate::OpError;
pub use element::CacheElement;
pub use new_position::{NewHead, NewPosition};
pub use q8_0::Q8_0;
pub use saved::{SavedCacheError, SavedPart};
pub(crate) use segment::HeadSegment;
use segment::{Arena, Layout};
pub use shape::CacheShape;
use std::fmt;

/// Positions of one segment of a cache, which is also one chunk and one softmax tile of the attention.
pub const CHUNK: usize = 256;

/// Positions of one panel of keys: whole vectors of every level, and two of the widest.
pub(crate) const PANEL: usize = 32;

/// Head dimensions of one block of values, and those that share a scale.
pub(crate) const DIM_BLOCK: usize = 32;

/// The keys and values of the positions decoded so far, as elements of type `E`.
///
/// The next position is always [`len`](Self::len): it is never passed beside the cache. Keys are stored as they
/// are after RoPE.
///
/// A capacity costs address space at once and memory only as it is filled (where the system hands out
/// zeroed pages lazily): per position what the element type says, in whole segments of [`CHUNK`] positions. What was
/// reserved at once is one array, and another for the scales if there are any. One of 2 MiB or more begins on a large page
/// and asks for such pages, so that reading it takes few page walks; where they are granted, what was filled counts in whole
/// ones, up to 2 MiB more of each array.
///
/// ```
/// # use ck_isa::Isa;
/// # use ck_ops::{CacheShape, KvCache, NewPosition, OpError};
/// let shape = CacheShape::new(1, 2)?; // one KV head of two dimensions
/// let mut cache = KvCache::<f32>::with_capacity(shape, 1)?;
/// let mut new = NewPosition::new(shape)?;
/// new.set(Isa::detect(), &[1.0, 2.0], &[3.0, 4.0])?;
/// cache.append(&new)?;
///
/// let mut key = [0.0; 2];
/// cache.key(0, 0, &mut key)?;
/// assert_eq!(key, [1.0, 2.0]);
/// assert_eq!(cache.append(&new), Err(OpError::CacheFull { capacity: 1 }));
/// # Ok::<(), OpError>(())
/// ```
pub struct KvCache<E> {
    layout: Layout,
    /// One per call that had to allocate, each of some segments.
    arenas: Vec<Arena<E>>,
    /// Where each segment is: the arena, and the segment in it.
    segments: Vec<(usize, usize)>,
    len: usize,
    capacity: usize,
}

impl<E: CacheElement> KvCache<E> {
    /// An empty cache with room for exactly `positions` positions.
    ///
    /// # Errors
    ///
    /// [`OpError::HeadDimBlock`] where the element type does not fit the shape, [`OpError::SizeOverflow`] and
    /// [`OpError::OutOfMemory`].
    pub fn with_capacity(shape: CacheShape, positions: usize) -> Result<Self, OpError> {
        let layout = Layout::of::<E>(shape)?;
        let (arenas, segments) = (Vec::new(), Vec::new());
        let mut cache = Self { layout, arenas, segments, len: 0, capacity: 0 };
        cache.reserve(positions)?;
        Ok(cache)
    }

    /// Makes room for at least `additional` more positions. What is stored stays where it is.
    ///
    /// # Errors
    ///
    /// [`OpError::SizeOverflow`] and [`OpError::OutOfMemory`]; the cache is then as it was.
    pub fn reserve(&mut self, additional: usize) -> Result<(), OpError> {
        const WHAT: &str = "kv cache";
        let positions =
            self.len.checked_add(additional).ok_or(OpError::SizeOverflow { what: WHAT })?;
        if positions <= self.capacity {
            return Ok(());
        }
        let missing = positions.div_ceil(CHUNK) - self.segments.len();
        if missing > 0 {
            let bytes = missing.saturating_mul(size_of::<(usize, usize)>());
            let refused = |_| OpError::OutOfMemory { what: WHAT, bytes };
            let arena = Arena::try_new(&self.layout, missing)?;
            self.arenas.try_reserve(1).map_err(refused)?;
            self.segments.try_reserve(missing).map_err(refused)?;
            self.segments.extend((0..missing).map(|index| (self.arenas.len(), index)));
            self.arenas.push(arena);
        }
        self.capacity = positions;
        Ok(())
    }

    /// KV heads and head dimension.
    #[must_use]
    pub fn shape(&self) -> CacheShape {
        self.layout.shape
    }

    /// How many positions are stored, which is the position that comes next.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no position is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many positions there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Drops the newest positions until `len` are left. With `len` or fewer stored it does nothing.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Drops every position.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Reads the key of one position and KV head, as stored, which is after RoPE.
    ///
    /// # Errors
    ///
    /// [`OpError::NotStored`], [`OpError::NoSuchKvHead`] and [`OpError::Length`]; `out` is then as it was.
    pub fn key(&self, kv_head: usize, position: usize, out: &mut [f32]) -> Result<(), OpError> {
        self.check_read(kv_head, position, out)?;
        self.segment(position / CHUNK, kv_head).read_key(position % CHUNK, out);
        Ok(())
    }

    /// Reads the value of one position and KV head, as stored.
    ///
    /// # Errors
    ///
    /// As [`key`](Self::key).
    pub fn value(&self, kv_head: usize, position: usize, out: &mut [f32]) -> Result<(), OpError> {
        self.check_read(kv_head, position, out)?;
        self.segment(position / CHUNK, kv_head).read_value(position % CHUNK, out);
        Ok(())
    }

    fn check_read(&self, kv_head: usize, position: usize, out: &[f32]) -> Result<(), OpError> {
        if position >= self.len {
            return Err(OpError::NotStored { position, len: self.len });
        }
        let shape = self.shape();
        shape.check_kv_head(kv_head)?;
        crate::finite::check_length("head", shape.head_dim(), out.len())
    }

    /// Puts `value` into every element and scale that is not in use.
    #[cfg(test)]
    pub(crate) fn fill_unused(&mut self, value: half::f16) {
        assert!(self.is_empty(), "everything is overwritten");
        self.arenas.iter_mut().for_each(|arena| arena.fill(value));
    }

    /// One KV head's part of segment `segment`, which exists.
    pub(crate) fn segment(&self, segment: usize, kv_head: usize) -> HeadSegment<'_, E> {
        let (arena, index) = self.segments[segment];
        self.arenas[arena].head(&self.layout, index, kv_head)
    }
}

impl<E: CacheElement> fmt::Debug for KvCache<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KvCache")
            .field("element", &E::NAME)
            .field("shape", &self.shape())
            .field("len", &self.len)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}
