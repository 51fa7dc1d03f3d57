//! Attention over everything stored and the new position.

use crate::LayerError;
use crate::scratch::{Member, Shared};
use crate::step::Step;
use crate::units::Units;
use ck_ops::{CacheElement, Context, WorkItem, attend_chunk, partial_len};
use ck_threadpool::Team;
use std::ops::Range;

/// Computes the member's share of the partial results.
///
/// A unit is one query head over one chunk of the context. The full chunks and the last one, which is
/// shorter, are shared out one after the other, each evenly. Neighbouring units of one KV head and chunk are
/// served together. Every member normalizes, rotates and rounds K for itself, and normalizes and rotates the queries
/// that it needs: both are small, and nobody has to wait for them.
pub(crate) fn attend<E: CacheElement>(
    team: &Team<'_>,
    step: Step<'_, E>,
    shared: &Shared<'_, E>,
    me: &mut Member<E>,
) -> Result<(), LayerError> {
    let q = shared.q.read(team);
    me.set_new(step, shared.k.read(team), shared.v.read(team))?;

    let len = partial_len(step.layer.shape().head_dim());
    for (units, partials) in step.units().into_iter().zip([&shared.full, &shared.last]) {
        let elements = partials.range_of(team, units.count() * len);
        let mine = elements.start / len..elements.end / len;
        let partials = partials.part_of(team, units.count() * len);
        attend_units(step, me, q, (units, mine), partials)?;
    }
    Ok(())
}

/// Computes the partial results of some units. The member's new position is set; `q` has the queries of all
/// heads, not rotated.
pub(crate) fn attend_units<E: CacheElement>(
    step: Step<'_, E>,
    me: &mut Member<E>,
    q: &[f32],
    (units, range): (Units, Range<usize>),
    mut partials: &mut [f32],
) -> Result<(), LayerError> {
    let len = partial_len(step.layer.shape().head_dim());
    me.rotate_queries(step, q, units.heads(range.clone()))?;
    for piece in units.pieces(range) {
        let (now, rest) = partials.split_at_mut(piece.n_heads * len);
        attend_piece(step, me, piece, now)?;
        partials = rest;
    }
    Ok(())
}

/// Some query heads of one KV head over one chunk.
fn attend_piece<E: CacheElement>(
    step: Step<'_, E>,
    me: &mut Member<E>,
    piece: WorkItem,
    partials: &mut [f32],
) -> Result<(), LayerError> {
    let head_dim = step.layer.shape().head_dim();
    let heads = piece.heads();
    let q = &me.q[heads.start * head_dim..heads.end * head_dim];
    let context = Context::new(step.cache, Some(&me.new))?;
    let attention = step.layer.attention();
    attend_chunk(step.isa, attention, context, piece, q, &mut me.attend, partials)?;
    Ok(())
}
