//! The memory that a call works in.

use crate::step::Step;
use crate::{LayerError, LayerShape};
use bytemuck::Zeroable;
use ck_ops::{AttendScratch, CHUNK, CacheElement, NewPosition, partial_len};
use ck_quant::{BLOCK_LEN, QuantizedVector};
use ck_threadpool::{Plan, Planned, SharedSlice};
use std::ops::Range;

/// Everything that a call writes before it commits, allocated once and used again for every token and
/// for every layer of the same shape.
#[derive(Debug)]
pub struct Scratch<E: CacheElement> {
    shape: LayerShape,
    positions: usize,
    /// What every member of the team has for itself.
    pub(crate) members: Vec<Member<E>>,
    /// Q, K and V, one after the other, not rotated.
    pub(crate) qkv: Vec<f32>,
    /// A partial result for every query head and chunk of the context, those of the last chunk first.
    pub(crate) partials: Vec<f32>,
    /// What the heads found, before the O projection.
    pub(crate) attn: Vec<f32>,
    /// The result, before it is committed.
    pub(crate) output: Vec<f32>,
    /// The integer dot products of the O projection, for the strategy that has no barrier.
    pub(crate) dots: Vec<i32>,
}

/// What one member of a team works in alone.
#[derive(Debug)]
pub(crate) struct Member<E: CacheElement> {
    /// The normalized input.
    pub(crate) normed: Vec<f32>,
    /// The same, quantized.
    pub(crate) activations: QuantizedVector,
    /// Room for one head.
    pub(crate) head: Vec<f32>,
    /// Queries, rotated; those of the heads that the member needs.
    pub(crate) q: Vec<f32>,
    /// Keys, rotated, and values.
    pub(crate) kv: Vec<f32>,
    /// The new row of the cache, complete in every member.
    pub(crate) new: NewPosition<E>,
    pub(crate) attend: AttendScratch,
    /// The heads' results; those that the member needs.
    pub(crate) attn: Vec<f32>,
    /// The same, quantized.
    pub(crate) attn_activations: QuantizedVector,
}

/// The scratch as one dispatch shares it.
pub(crate) struct Shared<'s, E: CacheElement> {
    pub(crate) members: SharedSlice<'s, Member<E>>,
    pub(crate) q: SharedSlice<'s, f32>,
    pub(crate) k: SharedSlice<'s, f32>,
    pub(crate) v: SharedSlice<'s, f32>,
    /// Partial results of all chunks but the last: the first elements, as many as there are.
    pub(crate) full: SharedSlice<'s, f32>,
    /// Partial results of the last chunk.
    pub(crate) last: SharedSlice<'s, f32>,
    pub(crate) attn: SharedSlice<'s, f32>,
    pub(crate) output: SharedSlice<'s, f32>,
}

/// Rows that are shared out together: those of a panel.
pub(crate) const PANEL_ROWS: usize = 16;

impl<E: CacheElement> Scratch<E> {
    /// Scratch for layers of this shape and contexts of up to `positions` positions, for a team of one.
    ///
    /// # Errors
    ///
    /// A shape that a cache of this element type cannot hold; sizes that no memory holds.
    pub fn new(shape: LayerShape, positions: usize) -> Result<Self, LayerError> {
        Self::for_team(shape, positions, 1)
    }

    /// Scratch for a team of up to `team` members.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); a team without members.
    pub fn for_team(shape: LayerShape, positions: usize, team: usize) -> Result<Self, LayerError> {
        if team == 0 {
            return Err(LayerError::Zero { what: "a team" });
        }
        let dots = (shape.q_dim() / BLOCK_LEN)
            .checked_mul(shape.embed_dim())
            .ok_or(LayerError::TooLarge { what: "embed_dim * n_heads * head_dim / 32" })?;
        Ok(Self {
            shape,
            positions,
            members: collect_exact(team, || Member::new(shape))?,
            qkv: zeros(shape.qkv_dim())?,
            partials: zeros(partials_len(shape, positions)?)?,
            attn: zeros(shape.q_dim())?,
            output: zeros(shape.embed_dim())?,
            dots: zeros(dots)?,
        })
    }

    /// Makes it fit for contexts of up to `positions` positions, if it is not yet.
    ///
    /// # Errors
    ///
    /// Sizes that no memory holds. The scratch is then as it was.
    pub fn reserve(&mut self, positions: usize) -> Result<(), LayerError> {
        if positions > self.positions {
            self.partials = zeros(partials_len(self.shape, positions)?)?;
            self.positions = positions;
        }
        Ok(())
    }

    /// The shape that it was made for.
    #[must_use]
    pub const fn shape(&self) -> LayerShape {
        self.shape
    }

    /// The longest context that it was made for.
    #[must_use]
    pub const fn positions(&self) -> usize {
        self.positions
    }

    /// The largest team that it was made for.
    #[must_use]
    pub fn team(&self) -> usize {
        self.members.len()
    }

    /// Shares the scratch among the members of one dispatch.
    pub(crate) fn share(&mut self) -> Shared<'_, E> {
        let len = partial_len(self.shape.head_dim());
        let full = self.partials.len() - self.shape.n_heads() * len;
        self.share_partials(full)
    }

    /// Shares the scratch among the members of the one dispatch of the barrier strategy, with the use of every
    /// part planned: see its table in [`phase`](crate::phase).
    pub(crate) fn share_planned<'s>(
        &'s mut self,
        step: Step<'_, E>,
        plan: &'s Plan,
    ) -> Shared<'s, E> {
        use Planned::{Own, Part, Read, Unused};
        let [full, _] = step.units();
        let shared = self.share_partials(full.count() * partial_len(step.layer.shape().head_dim()));
        Shared {
            members: shared.members.planned(plan, &[Own, Own, Own, Own]),
            q: shared.q.planned(plan, &[Part, Read]),
            k: shared.k.planned(plan, &[Part, Read]),
            v: shared.v.planned(plan, &[Part, Read]),
            full: shared.full.planned(plan, &[Unused, Part, Read]),
            last: shared.last.planned(plan, &[Unused, Part, Read]),
            attn: shared.attn.planned(plan, &[Unused, Unused, Part, Read]),
            output: shared.output.planned(plan, &[Unused, Unused, Unused, Part]),
        }
    }

    /// Shares the scratch, with `full` elements for the partial results of full chunks.
    fn share_partials(&mut self, full: usize) -> Shared<'_, E> {
        let shape = self.shape;
        let (q, kv) = self.qkv.split_at_mut(shape.q_dim());
        let (k, v) = kv.split_at_mut(shape.kv_dim());
        let panels = |rows: usize| rows.div_ceil(PANEL_ROWS);
        let after_q = panels(shape.q_dim());
        let after_k = after_q + panels(shape.kv_dim());
        let len = partial_len(shape.head_dim());
        let (last, rest) = self.partials.split_at_mut(shape.n_heads() * len);
        Shared {
            members: SharedSlice::new(&mut self.members),
            q: SharedSlice::in_blocks(q, PANEL_ROWS),
            k: SharedSlice::in_blocks(k, PANEL_ROWS).dealt_after(after_q),
            v: SharedSlice::in_blocks(v, PANEL_ROWS).dealt_after(after_k),
            full: SharedSlice::in_blocks(&mut rest[..full], len),
            last: SharedSlice::in_blocks(last, len),
            attn: SharedSlice::in_blocks(&mut self.attn, shape.head_dim()),
            output: SharedSlice::in_blocks(&mut self.output, PANEL_ROWS),
        }
    }
}

impl<E: CacheElement> Member<E> {
    fn new(shape: LayerShape) -> Result<Self, LayerError> {
        Ok(Self {
            normed: zeros(shape.embed_dim())?,
            activations: QuantizedVector::zeros(shape.embed_dim())?,
            head: zeros(shape.head_dim())?,
            q: zeros(shape.q_dim())?,
            kv: zeros(2 * shape.kv_dim())?,
            new: NewPosition::new(shape.cache()?)?,
            attend: AttendScratch::new(&shape.attention()?)?,
            attn: zeros(shape.q_dim())?,
            attn_activations: QuantizedVector::zeros(shape.q_dim())?,
        })
    }

    /// Normalizes and rotates `k`, and rounds it and `v` to the cache's type.
    pub(crate) fn set_new(
        &mut self,
        step: Step<'_, E>,
        k: &[f32],
        v: &[f32],
    ) -> Result<(), LayerError> {
        self.rotate_keys(step, k)?;
        self.new.set(step.isa, &self.kv[..k.len()], v)?;
        Ok(())
    }

    /// Copies the keys of all KV heads, normalizes and rotates them.
    pub(crate) fn rotate_keys(&mut self, step: Step<'_, E>, k: &[f32]) -> Result<(), LayerError> {
        let rotated = &mut self.kv[..k.len()];
        rotated.copy_from_slice(k);
        step.rotate_keys(rotated, &mut self.head)
    }

    /// Copies the queries of `heads` out of `q`, which has those of all heads, normalizes and rotates them.
    pub(crate) fn rotate_queries(
        &mut self,
        step: Step<'_, E>,
        q: &[f32],
        heads: Range<usize>,
    ) -> Result<(), LayerError> {
        let head_dim = step.layer.shape().head_dim();
        let elements = heads.start * head_dim..heads.end * head_dim;
        let rotated = &mut self.q[elements.clone()];
        rotated.copy_from_slice(&q[elements]);
        step.rotate_queries(rotated, &mut self.head)
    }
}

/// Elements of a partial result for every query head and chunk of `positions` positions.
fn partials_len(shape: LayerShape, positions: usize) -> Result<usize, LayerError> {
    let chunks = positions.div_ceil(CHUNK).max(1);
    partial_len(shape.head_dim())
        .checked_mul(shape.n_heads())
        .and_then(|len| len.checked_mul(chunks))
        .ok_or(LayerError::TooLarge { what: "heads times chunks of the context" })
}

/// The error of memory that the system refuses.
const REFUSED: LayerError = LayerError::OutOfMemory { what: "the scratch" };

/// `len` zeros, of which untouched pages take no memory.
pub(crate) fn zeros<T: Zeroable>(len: usize) -> Result<Vec<T>, LayerError> {
    bytemuck::allocation::try_zeroed_vec(len).map_err(|()| REFUSED)
}

/// What `make` makes, `count` times. The room for all is asked for first, so that a count beyond any memory
/// is refused at once.
pub(crate) fn collect_exact<T>(
    count: usize,
    mut make: impl FnMut() -> Result<T, LayerError>,
) -> Result<Vec<T>, LayerError> {
    let mut all = Vec::new();
    all.try_reserve_exact(count).map_err(|_| REFUSED)?;
    for _ in 0..count {
        all.push(make()?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ck_threadpool::ThreadPool;

    #[test]
    fn a_size_that_no_memory_holds_is_an_error() {
        let shape = LayerShape::new(64, 2, 1, 32).unwrap();
        for positions in [usize::MAX, usize::MAX / 2, 1 << 50] {
            let error = Scratch::<f32>::new(shape, positions).unwrap_err();
            assert!(
                matches!(error, LayerError::TooLarge { .. } | LayerError::OutOfMemory { .. }),
                "{positions}: {error}"
            );
        }
        let mut scratch = Scratch::<f32>::new(shape, 10).unwrap();
        assert!(scratch.reserve(1 << 50).is_err());
        assert_eq!(scratch.positions(), 10, "a failed call changes nothing");
        for team in [usize::MAX, 1 << 50] {
            let error = Scratch::<f32>::for_team(shape, 10, team).unwrap_err();
            assert!(
                matches!(error, LayerError::TooLarge { .. } | LayerError::OutOfMemory { .. }),
                "{team}: {error}"
            );
        }
        for embed_dim in [usize::MAX - 31, 1 << 50] {
            let shape = LayerShape::new(embed_dim, 2, 1, 32).unwrap();
            let error = Scratch::<f32>::new(shape, 10).unwrap_err();
            assert!(
                matches!(error, LayerError::TooLarge { .. } | LayerError::OutOfMemory { .. }),
                "{embed_dim}: {error}"
            );
        }
        let shape = LayerShape::new(64, 1 << 44, 1 << 44, 32).unwrap();
        Scratch::<f32>::new(shape, 10).unwrap_err();
    }

    #[test]
    fn the_rows_of_the_projections_are_shared_out_to_within_one_panel() {
        for (n_heads, n_kv_heads, head_dim) in [(14, 2, 64), (9, 3, 64), (32, 8, 64), (4, 2, 72)] {
            let shape = LayerShape::new(64, n_heads, n_kv_heads, head_dim).unwrap();
            for size in 1..=8 {
                let pool = ThreadPool::new(size).unwrap();
                let mut scratch = Scratch::<f32>::for_team(shape, 1, size).unwrap();
                let shared = scratch.share();
                let panels = pool.collect(|team| {
                    let rows = [&shared.q, &shared.k, &shared.v].map(|part| part.part(team).len());
                    rows.into_iter().map(|rows| rows.div_ceil(PANEL_ROWS)).sum::<usize>()
                });
                let (most, least) = (panels.iter().max().unwrap(), panels.iter().min().unwrap());
                assert!(most - least <= 1, "{shape}, {size} members: {panels:?}");
            }
        }
    }
}
