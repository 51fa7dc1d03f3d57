//! The header of a cache as bytes, and what can be wrong with such bytes.

use super::CacheShape;
use crate::OpError;
use bytemuck::{Pod, Zeroable};
use std::io;

/// What the bytes begin with.
pub(super) const MAGIC: [u8; 8] = *b"ck cache";

/// The layout that this crate writes and reads.
pub(super) const VERSION: u32 = 1;

/// The first bytes; all numbers are little-endian.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Header {
    pub(super) magic: [u8; 8],
    pub(super) version: u32,
    /// The element type.
    pub(super) element: u32,
    pub(super) n_kv_heads: u64,
    pub(super) head_dim: u64,
    /// Positions.
    pub(super) len: u64,
}

const _: () = assert!(size_of::<Header>() == 40, "no padding");

/// Why bytes are not the cache that was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedCacheError {
    /// They could not be read.
    #[error("saved cache: the bytes cannot be read: {0}")]
    Read(#[source] io::Error),
    /// They end too early.
    #[error("saved cache: the bytes end within {within}")]
    Ends {
        /// The part that is not whole: the header, a position or the checksum.
        within: SavedPart,
    },
    /// They begin with something else than a saved cache does.
    #[error("saved cache: expected the bytes to begin with \"ck cache\", found {found:?}")]
    Magic {
        /// The first eight bytes.
        found: [u8; 8],
    },
    /// Another version of the layout.
    #[error("saved cache: expected version {expected} of the layout, found {found}")]
    Version {
        /// The version that can be read.
        expected: u32,
        /// The version of the bytes.
        found: u32,
    },
    /// Elements of another type.
    #[error("saved cache: expected elements of type {expected} ({name}), found type {found}")]
    Element {
        /// The number of the type that was asked for.
        expected: u32,
        /// Its name.
        name: &'static str,
        /// The number that the bytes have.
        found: u32,
    },
    /// Other heads.
    #[error(
        "saved cache: expected {expected}, found {n_kv_heads} KV heads of {head_dim} dimensions"
    )]
    Shape {
        /// The heads that were asked for.
        expected: CacheShape,
        /// The KV heads of the bytes.
        n_kv_heads: u64,
        /// Their dimension.
        head_dim: u64,
    },
    /// More positions than there is to be room for.
    #[error("saved cache: expected at most {capacity} positions, found {len}")]
    TooLong {
        /// The capacity that was asked for.
        capacity: usize,
        /// The positions of the bytes.
        len: u64,
    },
    /// A number that no cache can hold.
    #[error("saved cache: position {position} holds a number that is not finite")]
    NonFinite {
        /// Where.
        position: usize,
    },
    /// The bytes are not those that were written.
    #[error("saved cache: expected the checksum {expected:08x}, found {found:08x}")]
    Checksum {
        /// What follows from the bytes.
        expected: u32,
        /// What they say.
        found: u32,
    },
    /// The cache could not be made.
    #[error(transparent)]
    Op(#[from] OpError),
}

/// A part of a saved cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SavedPart {
    /// The first 40 bytes.
    Header,
    /// The keys and values of a position.
    Position(usize),
    /// The last four bytes.
    Checksum,
}

impl std::fmt::Display for SavedPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Header => write!(f, "the header"),
            Self::Position(position) => write!(f, "position {position}"),
            Self::Checksum => write!(f, "the checksum"),
        }
    }
}
