//! How the work of one attention is cut into pieces that any thread may take.

use super::{Attention, partial_len};
use std::ops::Range;

/// The most query heads of one work item, which are served by one pass over keys and values.
pub const HEADS_PER_ITEM: usize = 8;

/// Some query heads of one KV head, over one chunk of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkItem {
    /// The first query head, by its number in the layer.
    pub first_head: usize,
    /// How many query heads, all of one KV head.
    pub n_heads: usize,
    /// The chunk, counted among those that are attended to: `0..n_chunks`.
    pub chunk: usize,
}

impl WorkItem {
    /// The query heads.
    #[must_use]
    pub fn heads(self) -> Range<usize> {
        self.first_head..self.first_head.saturating_add(self.n_heads)
    }
}

/// One layer's work items and where their results go.
///
/// Items are numbered KV head by KV head, within one by group of query heads, within a group by chunk. Their partial
/// results follow each other in that order, so that any run of items writes one piece of a slice.
impl Attention {
    /// Groups that the query heads of one KV head are cut into.
    fn groups_per_kv_head(&self) -> usize {
        self.group().div_ceil(HEADS_PER_ITEM)
    }

    /// The query heads of group `index`: as even as whole heads allow.
    fn group_heads(&self, index: usize) -> Range<usize> {
        let groups = self.groups_per_kv_head();
        let (kv_head, within) = (index / groups, index % groups);
        let first = kv_head * self.group();
        first + self.group() * within / groups..first + self.group() * (within + 1) / groups
    }

    /// How many work items a context of `positions` positions makes; `usize::MAX` where they are more than that.
    #[must_use]
    pub fn n_items(&self, positions: usize) -> usize {
        let of_a_chunk = self.shape().n_kv_heads() * self.groups_per_kv_head();
        of_a_chunk.saturating_mul(self.n_chunks(positions))
    }

    /// Work item `index` of a context of `positions` positions.
    ///
    /// # Panics
    ///
    /// If `index` is not below [`n_items`](Self::n_items).
    #[must_use]
    pub fn item(&self, index: usize, positions: usize) -> WorkItem {
        assert!(index < self.n_items(positions), "work item {index} does not exist");
        let n_chunks = self.n_chunks(positions);
        let heads = self.group_heads(index / n_chunks);
        let (first_head, n_heads) = (heads.start, heads.len());
        WorkItem { first_head, n_heads, chunk: index % n_chunks }
    }

    /// Every work item in order.
    pub fn items(&self, positions: usize) -> impl Iterator<Item = WorkItem> {
        (0..self.n_items(positions)).map(move |index| self.item(index, positions))
    }

    /// The work of the query heads in `heads` alone: pieces of at most [`HEADS_PER_ITEM`] heads of one KV head,
    /// each chunk after chunk.
    pub(super) fn items_of(
        &self,
        heads: Range<usize>,
        positions: usize,
    ) -> impl Iterator<Item = WorkItem> + use<> {
        let (group, n_chunks) = (self.group(), self.n_chunks(positions));
        let mut next = heads.start;
        let pieces = std::iter::from_fn(move || {
            let first_head = next;
            let of_kv_head = group - first_head % group;
            let n_heads = of_kv_head.min(HEADS_PER_ITEM).min(heads.end - first_head);
            next += n_heads;
            (n_heads > 0).then_some((first_head, n_heads))
        });
        pieces.flat_map(move |(first_head, n_heads)| {
            (0..n_chunks).map(move |chunk| WorkItem { first_head, n_heads, chunk })
        })
    }

    /// Elements that the partial results of all items take; those of item `index` start at
    /// [`partials_start`](Self::partials_start). `usize::MAX` where they are more than that.
    #[must_use]
    pub fn partials_len(&self, positions: usize) -> usize {
        let of_a_chunk = self.n_heads() * partial_len(self.head_dim());
        of_a_chunk.saturating_mul(self.n_chunks(positions))
    }

    /// Where the partial results of item `index` start. For `index == n_items` it is their end.
    #[must_use]
    pub fn partials_start(&self, index: usize, positions: usize) -> usize {
        if index >= self.n_items(positions) {
            return self.partials_len(positions);
        }
        let WorkItem { first_head, n_heads, chunk } = self.item(index, positions);
        (first_head * self.n_chunks(positions) + n_heads * chunk) * partial_len(self.head_dim())
    }

    /// The partial results of query head `head` in the order of the chunks, for [`merge`](super::merge), out of the
    /// partial results of all items.
    ///
    /// # Panics
    ///
    /// If there is no such head, or `partials` is not [`partials_len`](Self::partials_len) long.
    pub fn head_partials<'a>(
        &self,
        partials: &'a [f32],
        head: usize,
        positions: usize,
    ) -> impl Iterator<Item = &'a [f32]> + Clone + use<'a> {
        assert!(head < self.n_heads(), "query head {head} does not exist");
        assert_eq!(partials.len(), self.partials_len(positions), "partials of all items");
        let (n_chunks, len) = (self.n_chunks(positions), partial_len(self.head_dim()));
        let (kv_head, within) = (self.kv_head(head), head % self.group());
        let groups = self.groups_per_kv_head();
        // The group g whose range [G g / n, G (g + 1) / n) holds `within`.
        let group = ((within + 1) * groups - 1) / self.group();
        let heads = self.group_heads(kv_head * groups + group);
        let rows =
            partials[heads.start * n_chunks * len..heads.end * n_chunks * len].chunks_exact(len);
        rows.skip(head - heads.start).step_by(heads.len())
    }
}
