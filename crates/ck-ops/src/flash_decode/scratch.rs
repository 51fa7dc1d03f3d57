//! Memory for intermediate results.

use super::work_item::HEADS_PER_ITEM;
use super::{Attention, partial_len};
use crate::aligned::AlignedZeroed;
use crate::kv_cache::PANEL;
use crate::{CHUNK, OpError};

/// Scores of one head over one chunk, and a panel's width for a store that reaches past its end.
pub(super) const SCORES: usize = CHUNK + PANEL;

/// Memory for the intermediate results of one thread. It is made once for a layer's attention (or for
/// several alike); what it holds between calls means nothing.
#[derive(Debug)]
pub struct AttendScratch {
    n_heads: usize,
    head_dim: usize,
    /// `[HEADS_PER_ITEM][SCORES]`.
    pub(super) scores: AlignedZeroed<f32>,
    /// `[HEADS_PER_ITEM][partial_len]`: the chunk at hand.
    pub(super) partials: AlignedZeroed<f32>,
    /// `[n_heads][partial_len]`: the chunks merged so far.
    pub(super) totals: AlignedZeroed<f32>,
}

impl AttendScratch {
    /// Scratch for `attention`.
    ///
    /// # Errors
    ///
    /// [`OpError::SizeOverflow`] and [`OpError::OutOfMemory`].
    pub fn new(attention: &Attention) -> Result<Self, OpError> {
        const WHAT: &str = "attention scratch";
        let (n_heads, head_dim) = (attention.n_heads(), attention.head_dim());
        let partials = |heads: usize| {
            let len = heads.checked_mul(partial_len(head_dim));
            AlignedZeroed::try_new(len.ok_or(OpError::SizeOverflow { what: WHAT })?, WHAT)
        };
        Ok(Self {
            n_heads,
            head_dim,
            scores: AlignedZeroed::try_new(HEADS_PER_ITEM * SCORES, WHAT)?,
            partials: partials(HEADS_PER_ITEM)?,
            totals: partials(n_heads)?,
        })
    }

    pub(super) fn check(&self, attention: &Attention) -> Result<(), OpError> {
        let fits = (self.n_heads, self.head_dim) == (attention.n_heads(), attention.head_dim());
        if fits { Ok(()) } else { Err(OpError::Scratch) }
    }
}
