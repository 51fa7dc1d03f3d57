//! A cache out of bytes that may hold anything.

use super::saved::{Header, MAGIC, SavedCacheError, SavedPart, VERSION};
use super::{CacheElement, CacheShape, KvCache, NewPosition};
use crate::memory::zeroed;
use bytemuck::Zeroable;
use std::io::{ErrorKind, Read};

impl<E: CacheElement> KvCache<E> {
    /// Reads a cache that [`write_to`](Self::write_to) wrote, for the heads of `shape`, and makes room for `positions`
    /// positions in all.
    ///
    /// Nothing is read beyond it: several caches may follow each other. Memory is taken by what the caller says,
    /// never by what the bytes say. They are read in pieces of one position, so a file wants a
    /// [`BufReader`](std::io::BufReader).
    ///
    /// ```
    /// # use ck_isa::Isa;
    /// # use ck_ops::{CacheShape, KvCache, NewPosition};
    /// # let shape = CacheShape::new(1, 2)?;
    /// # let mut cache = KvCache::<f32>::with_capacity(shape, 1)?;
    /// # let mut new = NewPosition::new(shape)?;
    /// # new.set(Isa::detect(), &[1.0, 2.0], &[3.0, 4.0])?;
    /// # cache.append(&new)?;
    /// let mut bytes = Vec::new();
    /// cache.write_to(&mut bytes)?;
    /// let again = KvCache::<f32>::read_from(shape, 100, &bytes[..])?;
    /// assert_eq!((again.len(), again.capacity()), (1, 100));
    ///
    /// bytes[50] ^= 1;
    /// assert!(KvCache::<f32>::read_from(shape, 100, &bytes[..]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Every [`SavedCacheError`]: bytes that end early, that are not a cache of this element type, shape and at most
    /// this length, that hold numbers which are not finite, or whose checksum is another one.
    pub fn read_from(
        shape: CacheShape,
        positions: usize,
        input: impl Read,
    ) -> Result<Self, SavedCacheError> {
        let mut input = Summed { input, sum: crc32fast::Hasher::new() };
        let mut header = Header::zeroed();
        input.fill(bytemuck::bytes_of_mut(&mut header), SavedPart::Header)?;
        let len = check_header::<E>(&header, shape, positions)?;

        let mut cache = Self::with_capacity(shape, positions)?;
        let mut new = NewPosition::new(shape)?;
        let mut head = zeroed::<u8>(E::stored_bytes(shape.head_dim()), "saved head")?;
        for position in 0..len {
            let part = SavedPart::Position(position);
            for kv_head in new.heads_mut() {
                input.fill(&mut head, part)?;
                let key_is_finite = kv_head.take_key(&head);
                input.fill(&mut head, part)?;
                let value_is_finite = kv_head.take_value(&head);
                if !(key_is_finite && value_is_finite) {
                    return Err(SavedCacheError::NonFinite { position });
                }
            }
            cache.append(&new)?;
        }
        let expected = input.sum.clone().finalize();
        let mut found = [0; 4];
        input.fill(&mut found, SavedPart::Checksum)?;
        let found = u32::from_le_bytes(found);
        if found == expected {
            Ok(cache)
        } else {
            Err(SavedCacheError::Checksum { expected, found })
        }
    }
}

/// The number of positions, if the header is that of the cache that was asked for.
fn check_header<E: CacheElement>(
    header: &Header,
    shape: CacheShape,
    capacity: usize,
) -> Result<usize, SavedCacheError> {
    if header.magic != MAGIC {
        return Err(SavedCacheError::Magic { found: header.magic });
    }
    let (expected, found) = (VERSION, u32::from_le(header.version));
    if found != expected {
        return Err(SavedCacheError::Version { expected, found });
    }
    let (expected, found) = (E::CODE, u32::from_le(header.element));
    if found != expected {
        return Err(SavedCacheError::Element { expected, name: E::NAME, found });
    }
    let [n_kv_heads, head_dim] = [header.n_kv_heads, header.head_dim].map(u64::from_le);
    if [n_kv_heads, head_dim] != [shape.n_kv_heads() as u64, shape.head_dim() as u64] {
        return Err(SavedCacheError::Shape { expected: shape, n_kv_heads, head_dim });
    }
    let len = u64::from_le(header.len);
    match usize::try_from(len) {
        Ok(positions) if positions <= capacity => Ok(positions),
        _ => Err(SavedCacheError::TooLong { capacity, len }),
    }
}

/// What is read, and its checksum.
struct Summed<R> {
    input: R,
    sum: crc32fast::Hasher,
}

impl<R: Read> Summed<R> {
    fn fill(&mut self, bytes: &mut [u8], within: SavedPart) -> Result<(), SavedCacheError> {
        self.input.read_exact(bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => SavedCacheError::Ends { within },
            _ => SavedCacheError::Read(error),
        })?;
        self.sum.update(bytes);
        Ok(())
    }
}
