//! Memory for intermediate results.

use super::work_item::HEADS_PER_ITEM;
use super::{Attention, partial_len};
use crate::kv_cache::PANEL;
use crate::memory::zeroed;
use crate::{CHUNK, OpError};
use ck_pages::ZeroedSlice;

/// Scores of one head over one chunk, and a panel's width for stores that reach past its end.
pub(super) const ROW: usize = CHUNK + PANEL;

/// One head's scores, which become weights.
pub(super) type ScoreRow = [f32; ROW];

/// The scores of a work item's heads.
pub(super) type Scores = [ScoreRow; HEADS_PER_ITEM];

/// Memory for the intermediate results of one thread. It is made once for a layer's attention (or for
/// several alike); what it holds between calls means nothing.
#[derive(Debug)]
pub struct AttendScratch {
    n_heads: usize,
    head_dim: usize,
    scores: ZeroedSlice<f32>,
    /// `[head_dim]`: the query heads side by side.
    queries: ZeroedSlice<f32>,
    /// `[HEADS_PER_ITEM][partial_len]`: the chunk at hand.
    partials: ZeroedSlice<f32>,
    /// `[n_heads][partial_len]`: the chunks merged so far.
    totals: ZeroedSlice<f32>,
}

/// What the work on one chunk needs.
#[derive(Debug)]
pub(super) struct Work<'a> {
    pub(super) scores: &'a mut Scores,
    /// For each head dimension that element of up to eight query heads.
    pub(super) queries: &'a mut [[f32; HEADS_PER_ITEM]],
}

/// The parts of a scratch, borrowed at once.
pub(super) struct Parts<'a> {
    pub(super) work: Work<'a>,
    pub(super) partials: &'a mut [f32],
    pub(super) totals: &'a mut [f32],
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
            zeroed(len.ok_or(OpError::SizeOverflow { what: WHAT })?, WHAT)
        };
        Ok(Self {
            n_heads,
            head_dim,
            scores: zeroed(HEADS_PER_ITEM * ROW, WHAT)?,
            queries: zeroed(HEADS_PER_ITEM * head_dim, WHAT)?,
            partials: partials(HEADS_PER_ITEM)?,
            totals: partials(n_heads)?,
        })
    }

    /// Refuses scratch that was made for another attention.
    pub(super) fn check(&self, attention: &Attention) -> Result<(), OpError> {
        let expected = (attention.n_heads(), attention.head_dim());
        let found = (self.n_heads, self.head_dim);
        if expected == found { Ok(()) } else { Err(OpError::Scratch { expected, found }) }
    }

    /// Room for one partial of a head of `head_dim` dimensions.
    pub(super) fn total(&mut self, head_dim: usize) -> Result<&mut [f32], OpError> {
        let (expected, found) = ((self.n_heads, head_dim), (self.n_heads, self.head_dim));
        self.partials.get_mut(..partial_len(head_dim)).ok_or(OpError::Scratch { expected, found })
    }

    pub(super) fn parts(&mut self) -> Parts<'_> {
        let (rows, _) = self.scores.as_chunks_mut();
        let scores = rows.first_chunk_mut().expect("allocated with so many rows");
        let (queries, _) = self.queries.as_chunks_mut();
        Parts {
            work: Work { scores, queries },
            partials: &mut self.partials,
            totals: &mut self.totals,
        }
    }
}
