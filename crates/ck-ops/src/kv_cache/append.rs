//! Storing a position.

use super::{CHUNK, CacheElement, KvCache, NewPosition};
use crate::OpError;

impl<E: CacheElement> KvCache<E> {
    /// Stores `new` as position [`len`](Self::len).
    ///
    /// # Errors
    ///
    /// [`OpError::Shape`], [`OpError::Length`] and [`OpError::CacheFull`]; the cache is then as it was.
    pub fn append(&mut self, new: &NewPosition<E>) -> Result<(), OpError> {
        self.shape().check_same("new position", new.shape())?;
        new.check_heads()?;
        if self.len >= self.capacity {
            return Err(OpError::CacheFull { capacity: self.capacity });
        }
        let (arena, index) = self.segments[self.len / CHUNK];
        for kv_head in 0..self.shape().n_kv_heads() {
            let place = (index, kv_head, self.len % CHUNK);
            self.arenas[arena].write(&self.layout, place, new.head(kv_head));
        }
        self.len += 1;
        Ok(())
    }
}
