//! Attention of one position's query heads over everything cached, chunk by chunk.
//!
//! The context is cut into chunks of [`CHUNK`](crate::CHUNK) positions. For each chunk and query head a
//! *partial* result is computed: the largest score, the sum of the weights, and the weighted sum of the
//! values, with weights `exp(score - largest score)`. Partials of one head are merged in the order of the
//! chunks. Which thread computes which partial changes nothing.

mod attention;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512vnni;
mod context;
mod merge;
#[cfg(target_arch = "aarch64")]
mod neondot;
mod scalar;
mod scratch;
#[cfg(test)]
mod tests;
mod visible;
mod wide;
mod work_item;

use crate::finite::check_length;
use crate::{CacheElement, KvCache, NewPosition, OpError};
pub use attention::Attention;
use ck_isa::Isa;
pub(crate) use context::ChunkView;
pub use context::Context;
pub use merge::merge;
pub use scratch::AttendScratch;
use scratch::{Parts, Work};
use std::ops::Range;
pub use work_item::{HEADS_PER_ITEM, WorkItem};

/// Elements of one partial result: the weighted sum of the values (`head_dim`), the largest score, the sum of
/// the weights, and padding to whole cache lines. `usize::MAX` where they are more than that.
#[must_use]
pub const fn partial_len(head_dim: usize) -> usize {
    match head_dim.saturating_add(2).checked_next_multiple_of(16) {
        Some(len) => len,
        None => usize::MAX,
    }
}

/// Strided parts of the largest score and of the sum of the weights: lanes of the widest vector.
const PARTS: usize = 16;

/// One query head's result over one chunk, or over the chunks merged so far, in a slice of
/// [`partial_len`] elements.
struct Partial;

impl Partial {
    /// Where the largest score is, after the weighted sum.
    const fn max(head_dim: usize) -> usize {
        head_dim
    }

    /// Where the sum of the weights is.
    const fn sum(head_dim: usize) -> usize {
        head_dim + 1
    }
}

/// Computes the partial results of one work item.
///
/// `q` has the item's query heads, `[n_heads][head_dim]`, after RoPE. `partials` receives one partial per head,
/// `[n_heads][partial_len(head_dim)]`. All query heads of the item are served from one pass over the
/// keys and values of their KV head.
///
/// # Errors
///
/// [`OpError::EmptyContext`]; [`OpError::Shape`], [`OpError::Scratch`], [`OpError::WorkItemHeads`],
/// [`OpError::NoSuchChunk`] and [`OpError::Length`] for arguments that do not fit each other;
/// [`OpError::NonFiniteScore`] for a NaN, an infinity or an overflow. After that last one the contents of
/// `partials` mean nothing; nothing else has changed.
pub fn attend_chunk<E: CacheElement>(
    isa: Isa,
    attention: &Attention,
    context: Context<'_, E>,
    item: WorkItem,
    q: &[f32],
    scratch: &mut AttendScratch,
    partials: &mut [f32],
) -> Result<(), OpError> {
    let head_dim = attention.head_dim();
    attention.check_context(context)?;
    attention.check_item(item, context.positions())?;
    scratch.check(attention)?;
    check_length("queries of the work item", item.n_heads * head_dim, q.len())?;
    let expected = item.n_heads * partial_len(head_dim);
    check_length("partials of the work item", expected, partials.len())?;
    attend(isa, attention, context, item, q, &mut scratch.parts().work, partials)
}

/// [`attend_chunk`] after its checks.
fn attend<E: CacheElement>(
    isa: Isa,
    attention: &Attention,
    context: Context<'_, E>,
    item: WorkItem,
    q: &[f32],
    work: &mut Work<'_>,
    partials: &mut [f32],
) -> Result<(), OpError> {
    let head_dim = attention.head_dim();
    let chunk = attention.chunk_number(item.chunk, context.positions());
    let view = context.chunk(attention, attention.kv_head(item.first_head), chunk);
    let blocks = q
        .chunks(HEADS_PER_ITEM * head_dim)
        .zip(partials.chunks_mut(HEADS_PER_ITEM * partial_len(head_dim)));
    for (block, (q, partials)) in blocks.enumerate() {
        if !E::attend_block(isa, &view, HeadBlock { q, work, partials }) {
            let first_head = item.first_head + block * HEADS_PER_ITEM;
            return Err(non_finite_score(&view, first_head, chunk, q));
        }
    }
    Ok(())
}

/// What at most [`HEADS_PER_ITEM`] heads over one chunk are computed from and into.
#[derive(Debug)]
pub struct HeadBlock<'a, 'w> {
    /// The query heads, `[n_heads][head_dim]`.
    q: &'a [f32],
    work: &'a mut Work<'w>,
    /// `[n_heads][partial_len]`.
    partials: &'a mut [f32],
}

/// Computes the partials of a block of heads; false if a score is not finite.
pub(crate) fn attend_block<E: CacheElement>(
    isa: Isa,
    view: &ChunkView<'_, E>,
    block: HeadBlock<'_, '_>,
) -> bool {
    let HeadBlock { q, work, partials } = block;
    match isa {
        Isa::Scalar => scalar::attend(view, q, work, partials),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the features that the function names.
        Isa::Avx2(token) => unsafe { avx2::attend(token, view, q, work, partials) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves the features that the function names.
        Isa::Avx512Vnni(token) => unsafe { avx512vnni::attend(token, view, q, work, partials) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the token proves the features that the function names.
        Isa::NeonDot(token) => unsafe { neondot::attend(token, view, q, work, partials) },
    }
}

/// Finds the score that is not finite, by the plain code.
#[cold]
fn non_finite_score<E: CacheElement>(
    view: &ChunkView<'_, E>,
    first_head: usize,
    chunk: usize,
    q: &[f32],
) -> OpError {
    for (row, q) in q.chunks_exact(view.head_dim).enumerate() {
        let mut scores = [0.0; scratch::ROW];
        scalar::scores(view, q, &mut scores);
        for index in view.visible.positions() {
            let score = scores[index];
            if !score.is_finite() {
                let position = chunk * crate::CHUNK + index;
                return OpError::NonFiniteScore { head: first_head + row, position, score };
            }
        }
    }
    unreachable!("every level computes the same scores")
}

/// Attention of all query heads over everything in `cache` and, after it, `new`; serially.
///
/// Without `new` the query is that of the newest cached position. `q` is `[n_heads][head_dim]` after RoPE, and so is `out`. The bits are those of [`attend_chunk`] over all
/// [work items](Attention::item) and [`merge`] of every head, in any order and on any number of threads.
///
/// # Errors
///
/// As [`attend_chunk`] and [`merge`]. `out` is then as it was.
pub fn flash_decode<E: CacheElement>(
    isa: Isa,
    attention: &Attention,
    cache: &KvCache<E>,
    new: Option<&NewPosition<E>>,
    q: &[f32],
    scratch: &mut AttendScratch,
    out: &mut [f32],
) -> Result<(), OpError> {
    let context = Context::new(cache, new)?;
    flash_decode_heads(isa, attention, context, 0..attention.n_heads(), q, scratch, out)
}

/// [`flash_decode`] of some query heads: `q` and `out` are `[heads.len()][head_dim]`.
///
/// # Errors
///
/// As [`flash_decode`]; [`OpError::WorkItemHeads`] for heads that do not exist. `out` is then as it was.
pub fn flash_decode_heads<E: CacheElement>(
    isa: Isa,
    attention: &Attention,
    context: Context<'_, E>,
    heads: Range<usize>,
    q: &[f32],
    scratch: &mut AttendScratch,
    out: &mut [f32],
) -> Result<(), OpError> {
    let head_dim = attention.head_dim();
    attention.check_context(context)?;
    attention.check_heads(&heads)?;
    scratch.check(attention)?;
    check_length("queries", heads.len() * head_dim, q.len())?;
    check_length("attention output", heads.len() * head_dim, out.len())?;

    let Parts { mut work, partials, totals } = scratch.parts();
    let len = partial_len(head_dim);
    for item in attention.items_of(heads.clone(), context.positions()) {
        let rows = item.first_head - heads.start..item.first_head - heads.start + item.n_heads;
        let q = &q[rows.start * head_dim..rows.end * head_dim];
        let totals = &mut totals[rows.start * len..rows.end * len];
        if item.chunk == 0 {
            attend(isa, attention, context, item, q, &mut work, totals)?;
        } else {
            let partials = &mut partials[..item.n_heads * len];
            attend(isa, attention, context, item, q, &mut work, partials)?;
            for (total, partial) in totals.chunks_exact_mut(len).zip(partials.chunks_exact(len)) {
                merge::fold(isa, head_dim, total, partial);
            }
        }
    }
    let totals = totals.chunks_exact(len).take(heads.len());
    for (head, total) in heads.zip(totals.clone()) {
        merge::check(head_dim, head, total)?;
    }
    for (total, out) in totals.zip(out.chunks_exact_mut(head_dim)) {
        merge::finish(isa, total, out);
    }
    Ok(())
}
