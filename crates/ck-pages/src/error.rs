//! Why there is no memory.

/// Why a slice could not be allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PagesError {
    /// The size in bytes is beyond what a slice may have, `isize::MAX`.
    #[error("{len} elements of {element_bytes} bytes are more than an address space holds")]
    TooLarge {
        /// The elements asked for.
        len: usize,
        /// The size of one.
        element_bytes: usize,
    },
    /// The allocator refused.
    #[error("{bytes} bytes of memory were refused")]
    Refused {
        /// How much was asked for.
        bytes: usize,
    },
}
