//! Zeroed storage that starts on a cache line and whose untouched pages cost nothing.

use crate::OpError;
use bytemuck::Zeroable;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Bytes of a cache line, and of the widest vector.
const LINE: usize = 64;

/// `len` zeroed values, the first of them on a cache line.
///
/// The memory is asked for zeroed and with the type's own alignment, which is what lets the system hand out
/// pages that it has not touched; an allocation with a larger alignment would be zeroed by hand. The
/// start is moved up to the line here instead.
pub(crate) struct AlignedZeroed<T> {
    storage: Box<[T]>,
    start: usize,
    len: usize,
}

impl<T: Zeroable> AlignedZeroed<T> {
    /// # Errors
    ///
    /// [`OpError::SizeOverflow`] and [`OpError::OutOfMemory`], which name `what`.
    pub(crate) fn try_new(len: usize, what: &'static str) -> Result<Self, OpError> {
        let slack = LINE / size_of::<T>();
        let overflow = OpError::SizeOverflow { what };
        let padded = len.checked_add(slack).ok_or(overflow)?;
        let bytes = padded.checked_mul(size_of::<T>()).ok_or(overflow)?;
        if isize::try_from(bytes).is_err() {
            return Err(overflow);
        }
        let storage = bytemuck::allocation::try_zeroed_slice_box::<T>(padded)
            .map_err(|()| OpError::OutOfMemory { what, bytes })?;
        // An implementation may say that it cannot tell (`usize::MAX`); the storage then is merely unaligned.
        let offset = storage.as_ptr().align_offset(LINE);
        let start = if offset <= slack { offset } else { 0 };
        Ok(Self { storage, start, len })
    }
}

impl<T> Deref for AlignedZeroed<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.storage[self.start..][..self.len]
    }
}

impl<T> DerefMut for AlignedZeroed<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.storage[self.start..][..self.len]
    }
}

impl<T> fmt::Debug for AlignedZeroed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedZeroed").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_is_zeroed_and_starts_on_a_line() {
        for len in [0, 1, 15, 16, 1000] {
            let storage = AlignedZeroed::<f32>::try_new(len, "test").unwrap();
            assert_eq!(storage.len(), len);
            assert_eq!(storage.as_ptr().addr() % LINE, 0);
            assert!(storage.iter().all(|value| value.to_bits() == 0));
        }
    }

    #[test]
    fn sizes_that_cannot_be_had_are_errors() {
        for len in [usize::MAX, usize::MAX / 4, isize::MAX as usize / 2] {
            assert!(matches!(
                AlignedZeroed::<f32>::try_new(len, "test"),
                Err(OpError::SizeOverflow { what: "test" })
            ));
        }
        assert!(matches!(
            AlignedZeroed::<f32>::try_new(isize::MAX as usize / 8, "test"),
            Err(OpError::OutOfMemory { what: "test", .. })
        ));
    }
}
