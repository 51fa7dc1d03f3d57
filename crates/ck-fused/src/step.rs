//! What all phases of a call read.

use crate::units::Units;
use crate::{DecodeLayer, LayerError};
use ck_isa::Isa;
use ck_ops::{CacheElement, KvCache, RopeTable};

/// One token's way through one layer: everything that no phase changes.
pub(crate) struct Step<'s, E> {
    pub(crate) layer: &'s DecodeLayer<'s>,
    pub(crate) isa: Isa,
    pub(crate) rope: Option<&'s RopeTable>,
    /// The stored positions. The new one is in every member's scratch until the call commits it.
    pub(crate) cache: &'s KvCache<E>,
}

// Not derived: that would ask for `E: Clone`, which references do not need.
impl<E> Clone for Step<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Step<'_, E> {}

impl<E: CacheElement> Step<'_, E> {
    /// The position of the token.
    pub(crate) fn position(&self) -> usize {
        self.cache.len()
    }

    /// The units of all chunks but the last, and those of the last one.
    pub(crate) fn units(&self) -> [Units; 2] {
        let attention = self.layer.attention();
        let chunks = attention.n_chunks(self.position() + 1);
        let units = |chunks| Units::new(attention.n_heads(), attention.group(), chunks);
        [units(0..chunks - 1), units(chunks - 1..chunks)]
    }

    /// Rotates whole heads to the token's position, where the model rotates at all.
    pub(crate) fn rotate(&self, heads: &mut [f32]) -> Result<(), LayerError> {
        if let Some(rope) = self.rope {
            rope.apply(self.isa, self.position(), heads)?;
        }
        Ok(())
    }
}
