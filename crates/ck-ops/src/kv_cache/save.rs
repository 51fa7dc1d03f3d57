//! A cache as bytes: docs/formats.md has the layout.

use super::saved::{Header, MAGIC, VERSION};
use super::{CHUNK, CacheElement, KvCache};
use std::io::{self, Write};

impl<E: CacheElement> KvCache<E> {
    /// Writes everything stored, and nothing after it: several caches may follow each other.
    ///
    /// The bytes depend only on what is stored, not on the capacity, the machine or the order of calls; and
    /// [`read_from`](Self::read_from) gives the same cache, bit by bit. They are written in pieces of one position, so a
    /// file wants an [`io::BufWriter`].
    ///
    /// # Errors
    ///
    /// Those of `out`; [`io::ErrorKind::OutOfMemory`] where there is no memory for a position's bytes.
    pub fn write_to(&self, mut out: impl Write) -> io::Result<()> {
        let header = Header {
            magic: MAGIC,
            version: VERSION.to_le(),
            element: E::CODE.to_le(),
            n_kv_heads: (self.shape().n_kv_heads() as u64).to_le(),
            head_dim: (self.shape().head_dim() as u64).to_le(),
            len: (self.len as u64).to_le(),
        };
        let mut sum = crc32fast::Hasher::new();
        let mut put = |bytes: &[u8]| {
            sum.update(bytes);
            out.write_all(bytes)
        };
        put(bytemuck::bytes_of(&header))?;
        let mut row = Vec::new();
        let heads = 2 * self.shape().n_kv_heads();
        let bytes = heads.saturating_mul(E::stored_bytes(self.shape().head_dim()));
        row.try_reserve_exact(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        for position in 0..self.len {
            row.clear();
            for kv_head in 0..self.shape().n_kv_heads() {
                let segment = self.segment(position / CHUNK, kv_head);
                segment.put_key(position % CHUNK, &mut row);
                segment.put_value(position % CHUNK, &mut row);
            }
            put(&row)?;
        }
        let sum = sum.finalize();
        out.write_all(&sum.to_le_bytes())
    }
}
