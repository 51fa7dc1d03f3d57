//! KV heads and head dimension.

use crate::OpError;
use std::fmt;

/// How many KV heads a layer has, and of what dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheShape {
    n_kv_heads: usize,
    head_dim: usize,
}

impl CacheShape {
    /// `n_kv_heads` heads of `head_dim` elements.
    ///
    /// # Errors
    ///
    /// [`OpError::Zero`] and, for an odd `head_dim`, [`OpError::Odd`].
    pub fn new(n_kv_heads: usize, head_dim: usize) -> Result<Self, OpError> {
        for (what, size) in [("n_kv_heads", n_kv_heads), ("head_dim", head_dim)] {
            if size == 0 {
                return Err(OpError::Zero { what });
            }
        }
        if !head_dim.is_multiple_of(2) {
            return Err(OpError::Odd { what: "head_dim", found: head_dim });
        }
        Ok(Self { n_kv_heads, head_dim })
    }

    /// The KV heads.
    #[must_use]
    pub const fn n_kv_heads(self) -> usize {
        self.n_kv_heads
    }

    /// The elements of one head.
    #[must_use]
    pub const fn head_dim(self) -> usize {
        self.head_dim
    }

    pub(crate) fn check_kv_head(self, kv_head: usize) -> Result<(), OpError> {
        let n_kv_heads = self.n_kv_heads;
        if kv_head < n_kv_heads {
            Ok(())
        } else {
            Err(OpError::NoSuchKvHead { kv_head, n_kv_heads })
        }
    }

    /// [`OpError::Shape`] unless `found` is this shape.
    pub(crate) fn check_same(self, what: &'static str, found: Self) -> Result<(), OpError> {
        if self == found { Ok(()) } else { Err(OpError::Shape { what, expected: self, found }) }
    }
}

impl fmt::Display for CacheShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} KV heads of {} dimensions", self.n_kv_heads, self.head_dim)
    }
}
