//! A cursor over untrusted bytes.

use crate::error::{Error, Place};

/// The longest key or tensor name that is read, in bytes. The format gives this limit for keys.
const MAX_NAME: u64 = 65_535;

/// Reads little-endian values one after the other.
///
/// Nothing is allocated, and no length is believed before the bytes are there.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Why a value could not be read; [`Fault::at`] makes it an error by adding where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `needed` bytes at `offset`, where only `left` remain.
    Short { offset: usize, needed: u64, left: usize },
    /// A string that is not UTF-8.
    NotUtf8,
    /// A name that is empty or too long.
    NameLength { len: u64 },
}

impl Fault {
    /// This fault at `place`.
    pub(crate) fn at(self, place: Place) -> Error {
        match self {
            Self::Short { offset, needed, left } => {
                Error::Truncated { place, offset, needed, left }
            }
            Self::NotUtf8 => Error::NotUtf8 { place },
            Self::NameLength { len } => Error::NameLength { place, len },
        }
    }
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// Bytes that are still there.
    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Fails if fewer than `needed` bytes are left. Reads nothing.
    pub(crate) fn expect(&self, needed: u64) -> Result<(), Fault> {
        let left = self.left();
        if needed <= left as u64 {
            Ok(())
        } else {
            Err(Fault::Short { offset: self.at, needed, left })
        }
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: u64) -> Result<&'a [u8], Fault> {
        self.expect(len)?;
        // `expect` compared with a usize, so `len` is one, and the sum is at most the length.
        let taken = &self.bytes[self.at..self.at + len as usize];
        self.at += taken.len();
        Ok(taken)
    }

    /// The next `N` bytes as an array, for `from_le_bytes`.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }

    /// The next four bytes.
    pub(crate) fn u32(&mut self) -> Result<u32, Fault> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// The next eight bytes.
    pub(crate) fn u64(&mut self) -> Result<u64, Fault> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A length of eight bytes and as many bytes of text.
    pub(crate) fn string(&mut self) -> Result<&'a str, Fault> {
        let len = self.u64()?;
        std::str::from_utf8(self.take(len)?).map_err(|_| Fault::NotUtf8)
    }

    /// A string that names something: not empty, and not longer than [`MAX_NAME`].
    pub(crate) fn name(&mut self) -> Result<&'a str, Fault> {
        let len = self.clone().u64()?;
        if (1..=MAX_NAME).contains(&len) { self.string() } else { Err(Fault::NameLength { len }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_in_order_and_stops_at_the_end() {
        let mut reader = Reader::new(&[1, 0, 0, 0, 7, 8]);
        assert_eq!(reader.u32(), Ok(1));
        assert_eq!(reader.u32(), Err(Fault::Short { offset: 4, needed: 4, left: 2 }));
        assert_eq!(reader.take(2), Ok(&[7, 8][..]));
        assert_eq!(reader.offset(), 6);
        assert_eq!(reader.take(0), Ok(&[][..]));
        assert_eq!(
            reader.take(u64::MAX),
            Err(Fault::Short { offset: 6, needed: u64::MAX, left: 0 })
        );
    }

    #[test]
    fn names_have_a_length_and_are_text() {
        let name = |len: u64, text: &[u8]| {
            let bytes = [&len.to_le_bytes()[..], text].concat();
            Reader::new(&bytes).name().map(str::to_owned)
        };
        assert_eq!(name(2, b"ab").as_deref(), Ok("ab"));
        assert_eq!(name(0, b""), Err(Fault::NameLength { len: 0 }));
        assert_eq!(name(65_536, b""), Err(Fault::NameLength { len: 65_536 }));
        assert_eq!(name(65_535, b""), Err(Fault::Short { offset: 8, needed: 65_535, left: 0 }));
        assert_eq!(name(1, &[0xFF]), Err(Fault::NotUtf8));
    }
}
