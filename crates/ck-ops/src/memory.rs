//! Memory whose size was worked out from a shape, or an error that says what it was for.

use crate::OpError;
use bytemuck::Pod;
use ck_pages::{PagesError, ZeroedSlice};

/// `len` zeroed elements for `what`.
///
/// # Errors
///
/// [`OpError::SizeOverflow`] and [`OpError::OutOfMemory`], which name `what`.
pub(crate) fn zeroed<T: Pod>(len: usize, what: &'static str) -> Result<ZeroedSlice<T>, OpError> {
    ZeroedSlice::new(len).map_err(|error| match error {
        PagesError::Refused { bytes } => OpError::OutOfMemory { what, bytes },
        _ => OpError::SizeOverflow { what },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_cannot_be_had_are_errors() {
        for len in [usize::MAX, usize::MAX / 4, isize::MAX as usize / 2] {
            assert_eq!(
                zeroed::<f32>(len, "test").err(),
                Some(OpError::SizeOverflow { what: "test" })
            );
        }
        assert!(matches!(
            zeroed::<f32>(isize::MAX as usize / 8, "test"),
            Err(OpError::OutOfMemory { what: "test", .. })
        ));
    }
}
