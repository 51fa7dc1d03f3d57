//! Taking over the beginning of another cache.

use super::{CHUNK, CacheElement, KvCache};
use crate::OpError;

impl<E: CacheElement> KvCache<E> {
    /// Makes this cache hold the first `positions` positions of `source`, as stored, and nothing else: so that several
    /// continuations can share what a prompt has left.
    ///
    /// There must be room for them: it is [`reserve`](Self::reserve) that makes room.
    ///
    /// ```
    /// # use ck_isa::Isa;
    /// # use ck_ops::{CacheShape, KvCache, NewPosition, OpError};
    /// # let shape = CacheShape::new(1, 2)?;
    /// # let mut prompt = KvCache::<f32>::with_capacity(shape, 2)?;
    /// # let mut new = NewPosition::new(shape)?;
    /// # new.set(Isa::detect(), &[1.0, 2.0], &[3.0, 4.0])?;
    /// # prompt.append(&new)?;
    /// # prompt.append(&new)?;
    /// let mut other = KvCache::with_capacity(shape, 100)?;
    /// other.copy_prefix(&prompt, 1)?;
    /// assert_eq!(other.len(), 1);
    /// assert_eq!(other.copy_prefix(&prompt, 3), Err(OpError::NotStored { position: 2, len: 2 }));
    /// # Ok::<(), OpError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`OpError::Shape`], [`OpError::NotStored`] and [`OpError::CacheFull`]; this cache is then as it was.
    pub fn copy_prefix(&mut self, source: &Self, positions: usize) -> Result<(), OpError> {
        self.shape().check_same("copied cache", source.shape())?;
        if positions > source.len {
            return Err(OpError::NotStored { position: positions - 1, len: source.len });
        }
        if positions > self.capacity {
            return Err(OpError::CacheFull { capacity: self.capacity });
        }
        for segment in 0..positions.div_ceil(CHUNK) {
            let (from, from_index) = source.segments[segment];
            let (to, to_index) = self.segments[segment];
            let from = source.arenas[from].segment(&source.layout, from_index);
            self.arenas[to].copy_segment(&self.layout, to_index, from);
        }
        self.len = positions;
        Ok(())
    }
}
