//! What a query attends to.

use super::visible::Visible;
use super::{Attention, PARTS};
use crate::kv_cache::HeadSegment;
use crate::{CHUNK, CacheElement, CacheShape, KvCache, NewPosition, OpError};
use std::fmt;
use std::ops::Range;

/// The cached positions and, after them, the new one.
pub struct Context<'a, E> {
    cache: &'a KvCache<E>,
    new: Option<&'a NewPosition<E>>,
}

// Not derived: that would ask for `E: Clone`, which a pair of references does not need.
impl<E> Clone for Context<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Context<'_, E> {}

impl<E: CacheElement> fmt::Debug for Context<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("cache", &self.cache).field("new", &self.new).finish()
    }
}

impl<'a, E: CacheElement> Context<'a, E> {
    /// Everything in `cache`, then `new`, which is not in it yet. Without `new` the query is that of the
    /// newest cached position.
    ///
    /// # Errors
    ///
    /// [`OpError::Shape`] if the two do not have the same heads, [`OpError::Length`] for a head of another dimension.
    pub fn new(cache: &'a KvCache<E>, new: Option<&'a NewPosition<E>>) -> Result<Self, OpError> {
        if let Some(new) = new {
            cache.shape().check_same("new position", new.shape())?;
            new.check_heads()?;
        }
        Ok(Self { cache, new })
    }

    /// How many positions there are, the new one among them.
    #[must_use]
    pub fn positions(self) -> usize {
        self.cache.len() + usize::from(self.new.is_some())
    }

    /// KV heads and head dimension.
    #[must_use]
    pub fn shape(self) -> CacheShape {
        self.cache.shape()
    }

    /// One KV head's part of the cache's chunk `number`, which has visible positions.
    pub(super) fn chunk(
        self,
        attention: &Attention,
        kv_head: usize,
        number: usize,
    ) -> ChunkView<'a, E> {
        let stored = self.cache.len().saturating_sub(number * CHUNK).min(CHUNK);
        let is_last = self.positions().div_ceil(CHUNK) == number + 1;
        ChunkView {
            head_dim: attention.head_dim(),
            scale: attention.scale(),
            soft_cap: attention.soft_cap(),
            visible: attention.visible(number, self.positions()),
            cached: (stored > 0).then(|| self.cache.segment(number, kv_head)),
            new: self.new.filter(|_| is_last).map(|new| (stored, new.head(kv_head))),
            next_keys: match self.cache.len() > (number + 1) * CHUNK {
                true => self.cache.segment(number + 1, kv_head).keys,
                false => &[],
            },
        }
    }
}

/// Everything that the query heads of one KV head need to attend to one chunk. Positions count from the chunk's
/// start.
#[derive(Debug)]
pub struct ChunkView<'a, E> {
    pub(super) head_dim: usize,
    pub(super) scale: f32,
    pub(super) soft_cap: Option<f32>,
    /// What is attended to. The new position, which comes last, always is.
    pub(super) visible: Visible,
    /// The cached positions, if the chunk has any.
    pub(super) cached: Option<HeadSegment<'a, E>>,
    /// The new position, if it is in this chunk, and its place.
    pub(super) new: Option<(usize, HeadSegment<'a, E>)>,
    /// The keys of the next chunk, which is mostly what comes next; empty if there is none.
    pub(super) next_keys: &'a [E],
}

impl<'a, E: CacheElement> ChunkView<'a, E> {
    /// Where the position at `index` is: a segment and the index within it.
    pub(super) fn segment_of(&self, index: usize) -> (HeadSegment<'a, E>, usize) {
        match (self.new, self.cached) {
            (Some((place, new)), _) if index == place => (new, 0),
            (_, Some(cached)) => (cached, index),
            _ => unreachable!("a chunk without cached positions has only the new one"),
        }
    }

    /// The positions whose scores are computed from the cache: [spans](Visible::spans), without the last if it would
    /// hold nothing but the new position.
    pub(super) fn cached_spans(&self) -> [Range<usize>; 2] {
        let end = self.new.map_or(CHUNK, |(place, _)| place.next_multiple_of(PARTS));
        self.visible.spans().map(|span| span.start.min(end)..span.end.min(end))
    }

    /// The rows of values that are visible, in order.
    pub(super) fn runs(&self) -> [Option<Run<'a, E>>; 3] {
        let end = self.new.map_or(CHUNK, |(place, _)| place);
        let cached = |range: &Range<usize>| {
            let range = range.start..range.end.min(end);
            let rows = self.cached.filter(|_| !range.is_empty())?;
            Some(Run { rows, first_row: range.start, first: range.start, len: range.len() })
        };
        let new = self.new.map(|(first, rows)| Run { rows, first_row: 0, first, len: 1 });
        [cached(&self.visible.sinks), cached(&self.visible.window), new]
    }
}

/// Rows of values one after the other, and where their weights start.
pub(super) struct Run<'a, E> {
    pub(super) rows: HeadSegment<'a, E>,
    /// The first of them.
    pub(super) first_row: usize,
    /// Its position in the chunk.
    pub(super) first: usize,
    pub(super) len: usize,
}
