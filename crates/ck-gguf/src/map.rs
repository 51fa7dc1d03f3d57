//! Files mapped into memory.

use crate::error::Error;
use memmap2::Mmap;
use std::fs::File;
use std::ops::Deref;
use std::path::Path;

/// The bytes of a file, mapped into memory: nothing is read before it is used, nothing is copied.
///
/// Where the promise of [`open`](Self::open) cannot be given, [`std::fs::read`] gives the same
/// bytes by copying them.
#[derive(Debug)]
pub struct MappedFile {
    map: Mmap,
}

impl MappedFile {
    /// Maps the file at `path`.
    ///
    /// # Safety
    ///
    /// - While the value lives, nobody writes to the file or makes it shorter, neither this
    ///   process nor another one. The bytes are lent out as `&[u8]`, which must not change; and
    ///   reading beyond a shortened file's end kills the process.
    ///
    /// # Errors
    ///
    /// [`Error::Map`] if the file cannot be opened or mapped.
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let failed = |source| Error::Map { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        // SAFETY: the file does not change while the mapping lives; that is what the caller of this
        // function promises, and the mapping lives in the value that it returns.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        Ok(Self { map })
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}
