//! The shape of an attention and how its context is cut.

use super::visible::Visible;
use super::{Context, HEADS_PER_ITEM, WorkItem, partial_len};
use crate::{CHUNK, CacheElement, CacheShape, OpError};

/// What a layer says about its attention.
///
/// Query head `h` reads KV head `h / (n_heads / n_kv_heads)`; both are numbers of the whole layer.
///
/// ```
/// # use ck_ops::Attention;
/// let attention = Attention::new(14, 2, 64)?;
/// assert_eq!((attention.kv_head(6), attention.kv_head(7)), (0, 1));
/// assert_eq!(attention.scale(), 0.125);
/// # Ok::<(), ck_ops::OpError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    shape: CacheShape,
    n_heads: usize,
    scale: f32,
    soft_cap: Option<f32>,
    window: Option<usize>,
    sinks: usize,
}

impl Attention {
    /// `n_heads` query heads on `n_kv_heads` KV heads, with scale `1 / sqrt(head_dim)`, no soft cap and no
    /// window.
    ///
    /// # Errors
    ///
    /// [`OpError::Zero`], [`OpError::Odd`], [`OpError::HeadGroups`] and [`OpError::SizeOverflow`].
    pub fn new(n_heads: usize, n_kv_heads: usize, head_dim: usize) -> Result<Self, OpError> {
        let shape = CacheShape::new(n_kv_heads, head_dim)?;
        if n_heads == 0 {
            return Err(OpError::Zero { what: "n_heads" });
        }
        if !n_heads.is_multiple_of(n_kv_heads) {
            return Err(OpError::HeadGroups { n_heads, n_kv_heads });
        }
        // The partials of all heads, those of a work item, and what cuts the heads of a KV head into groups.
        let group = n_heads / n_kv_heads;
        let sizes = [
            (partial_len(head_dim), n_heads),
            (partial_len(head_dim), HEADS_PER_ITEM),
            (group, group.div_ceil(HEADS_PER_ITEM)),
        ];
        if sizes.iter().any(|(a, b)| a.checked_mul(*b).is_none()) {
            return Err(OpError::SizeOverflow { what: "attention" });
        }
        let scale = (1.0 / libm::sqrt(head_dim as f64)) as f32;
        Ok(Self { shape, n_heads, scale, soft_cap: None, window: None, sinks: 0 })
    }

    /// Multiplies scores by `scale` instead.
    ///
    /// # Errors
    ///
    /// [`OpError::ScoreScale`].
    pub fn with_scale(mut self, scale: f32) -> Result<Self, OpError> {
        if !scale.is_finite() {
            return Err(OpError::ScoreScale { scale });
        }
        self.scale = scale;
        Ok(self)
    }

    /// Makes of a scaled score `s` the score `soft_cap * tanh(s / soft_cap)`.
    ///
    /// # Errors
    ///
    /// [`OpError::SoftCap`].
    pub fn with_soft_cap(mut self, soft_cap: f32) -> Result<Self, OpError> {
        if !(soft_cap.is_finite() && soft_cap > 0.0) {
            return Err(OpError::SoftCap { soft_cap });
        }
        self.soft_cap = Some(soft_cap);
        Ok(self)
    }

    /// Attends only to the newest `window` positions, the query's own among them.
    ///
    /// # Errors
    ///
    /// [`OpError::Zero`].
    pub fn with_window(mut self, window: usize) -> Result<Self, OpError> {
        if window == 0 {
            return Err(OpError::Zero { what: "attention window" });
        }
        self.window = Some(window);
        Ok(self)
    }

    /// Attends to the first `sinks` positions too, whether or not they are in the window.
    #[must_use]
    pub fn with_sinks(mut self, sinks: usize) -> Self {
        self.sinks = sinks;
        self
    }

    /// The query heads.
    #[must_use]
    pub fn n_heads(&self) -> usize {
        self.n_heads
    }

    /// The KV heads and the head dimension.
    #[must_use]
    pub fn shape(&self) -> CacheShape {
        self.shape
    }

    /// The KV heads.
    #[must_use]
    pub fn n_kv_heads(&self) -> usize {
        self.shape.n_kv_heads()
    }

    /// The elements of one head.
    #[must_use]
    pub fn head_dim(&self) -> usize {
        self.shape.head_dim()
    }

    /// What scores are multiplied by.
    #[must_use]
    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// The soft cap of the scores.
    #[must_use]
    pub fn soft_cap(&self) -> Option<f32> {
        self.soft_cap
    }

    /// How many of the newest positions are attended to, if not all.
    #[must_use]
    pub fn window(&self) -> Option<usize> {
        self.window
    }

    /// How many of the first positions are attended to beside the window.
    #[must_use]
    pub fn sinks(&self) -> usize {
        self.sinks
    }

    /// Query heads per KV head.
    #[must_use]
    pub fn group(&self) -> usize {
        self.n_heads / self.shape.n_kv_heads()
    }

    /// The KV head that query head `head` reads.
    #[must_use]
    pub fn kv_head(&self, head: usize) -> usize {
        head / self.group()
    }

    /// How many chunks of a context of `positions` positions the newest one attends to.
    #[must_use]
    pub fn n_chunks(&self, positions: usize) -> usize {
        let (sink_chunks, window_chunks) = self.chunks(positions);
        sink_chunks + window_chunks.len()
    }

    /// Chunks of sinks before the window's, and the chunks of the window that are not among them.
    fn chunks(&self, positions: usize) -> (usize, std::ops::Range<usize>) {
        let start = self.window_start(positions);
        let sink_chunks = self.sinks.min(start).div_ceil(CHUNK);
        (sink_chunks, (start / CHUNK).max(sink_chunks)..positions.div_ceil(CHUNK))
    }

    /// The first position of the window.
    fn window_start(&self, positions: usize) -> usize {
        self.window.map_or(0, |window| positions.saturating_sub(window))
    }

    /// The number within the cache of chunk `chunk` of those that are attended to.
    pub(super) fn chunk_number(&self, chunk: usize, positions: usize) -> usize {
        let (sink_chunks, window_chunks) = self.chunks(positions);
        if chunk < sink_chunks { chunk } else { window_chunks.start + (chunk - sink_chunks) }
    }

    /// The positions of the cache's chunk `number` that are attended to.
    pub(super) fn visible(&self, number: usize, positions: usize) -> Visible {
        let start = self.window_start(positions);
        Visible::new(number * CHUNK, self.sinks.min(start), start..positions)
    }

    /// Refuses a context of other heads, and an empty one.
    pub(super) fn check_context<E: CacheElement>(
        &self,
        context: Context<'_, E>,
    ) -> Result<(), OpError> {
        self.shape.check_same("kv cache", context.shape())?;
        if context.positions() == 0 { Err(OpError::EmptyContext) } else { Ok(()) }
    }

    /// Refuses query heads that do not exist.
    pub(super) fn check_heads(&self, heads: &std::ops::Range<usize>) -> Result<(), OpError> {
        if heads.start <= heads.end && heads.end <= self.n_heads {
            return Ok(());
        }
        let (group, total) = (self.group(), self.n_heads);
        let n_heads = heads.end.saturating_sub(heads.start);
        Err(OpError::WorkItemHeads { first_head: heads.start, n_heads, group, total })
    }

    /// Refuses heads that are not those of one KV head, and a chunk that does not exist.
    pub(super) fn check_item(&self, item: WorkItem, positions: usize) -> Result<(), OpError> {
        let WorkItem { first_head, n_heads, chunk } = item;
        let (group, total) = (self.group(), self.n_heads);
        let fits = n_heads > 0 && first_head < total && n_heads <= group - first_head % group;
        if !fits {
            return Err(OpError::WorkItemHeads { first_head, n_heads, group, total });
        }
        let n_chunks = self.n_chunks(positions);
        if chunk < n_chunks { Ok(()) } else { Err(OpError::NoSuchChunk { chunk, n_chunks }) }
    }
}
