//! What all phases of a call read.

use crate::units::Units;
use crate::{DecodeLayer, LayerError, Norm, Observer, Phase};
use ck_isa::Isa;
use ck_ops::{CacheElement, KvCache, RopeTable, rms_norm};
use ck_threadpool::Team;

/// One token's way through one layer: everything that no phase changes.
pub(crate) struct Step<'s, E> {
    pub(crate) layer: &'s DecodeLayer<'s>,
    pub(crate) isa: Isa,
    /// The norms of query heads and of key heads, where they are still to be applied.
    pub(crate) head_norms: [Option<&'s Norm<'s>>; 2],
    pub(crate) rope: Option<&'s RopeTable>,
    /// The position of the token.
    pub(crate) position: usize,
    /// The stored positions. The new one is in every member's scratch until the call commits it.
    pub(crate) cache: &'s KvCache<E>,
    pub(crate) observer: Option<&'s Observer<'s>>,
}

// Not derived: that would ask for `E: Clone`, which references do not need.
impl<E> Clone for Step<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Step<'_, E> {}

impl<E: CacheElement> Step<'_, E> {
    /// Says that `team`'s member has come to the end of a phase.
    pub(crate) fn end(&self, phase: Phase, team: &Team<'_>) {
        if let Some(observer) = self.observer {
            observer(phase, team.index());
        }
    }

    /// The units of all chunks but the last, and those of the last one.
    pub(crate) fn units(&self) -> [Units; 2] {
        Units::of(self.layer.attention(), self.position + 1)
    }

    /// Normalizes whole query heads and rotates them, where the model does so. `head` is room for one head.
    pub(crate) fn rotate_queries(
        &self,
        heads: &mut [f32],
        head: &mut [f32],
    ) -> Result<(), LayerError> {
        self.rotate(self.head_norms[0], heads, head)
    }

    /// Normalizes whole key heads and rotates them, where the model does so. `head` is room for one head.
    pub(crate) fn rotate_keys(
        &self,
        heads: &mut [f32],
        head: &mut [f32],
    ) -> Result<(), LayerError> {
        self.rotate(self.head_norms[1], heads, head)
    }

    fn rotate(
        &self,
        norm: Option<&Norm<'_>>,
        heads: &mut [f32],
        head: &mut [f32],
    ) -> Result<(), LayerError> {
        if let Some(norm) = norm {
            for normed in heads.chunks_exact_mut(head.len()) {
                head.copy_from_slice(normed);
                rms_norm(self.isa, head, &norm.gamma, norm.eps, normed)?;
            }
        }
        if let Some(rope) = self.rope {
            rope.apply(self.isa, self.position, heads)?;
        }
        Ok(())
    }
}
