//! The partial results of a head become its result.

use crate::LayerError;
use crate::scratch::{Member, Shared};
use crate::step::Step;
use ck_ops::{AttendScratch, CacheElement, merge as merge_head, partial_len};
use ck_threadpool::Team;
use std::ops::Range;

/// Merges the partial results of the member's heads, in the order of the chunks.
pub(crate) fn merge<E: CacheElement>(
    team: &Team<'_>,
    step: Step<'_, E>,
    shared: &Shared<'_, E>,
    me: &mut Member<E>,
) -> Result<(), LayerError> {
    let head_dim = step.layer.shape().head_dim();
    let elements = shared.attn.range(team);
    let heads = elements.start / head_dim..elements.end / head_dim;
    let partials = [shared.full.read(team), shared.last.read(team)];
    merge_heads(step, partials, &mut me.attend, heads, shared.attn.part(team))
}

/// Merges all heads into the member's own memory, where nobody hands their results over.
pub(crate) fn merge_all<E: CacheElement>(
    team: &Team<'_>,
    step: Step<'_, E>,
    shared: &Shared<'_, E>,
    me: &mut Member<E>,
) -> Result<(), LayerError> {
    let heads = 0..step.layer.shape().n_heads();
    let partials = [shared.full.read(team), shared.last.read(team)];
    merge_heads(step, partials, &mut me.attend, heads, &mut me.attn)
}

/// Merges `heads` into `out`, out of the partial results of the full chunks and of the last one.
pub(crate) fn merge_heads<E: CacheElement>(
    step: Step<'_, E>,
    [full, last]: [&[f32]; 2],
    scratch: &mut AttendScratch,
    heads: Range<usize>,
    out: &mut [f32],
) -> Result<(), LayerError> {
    let head_dim = step.layer.shape().head_dim();
    let len = partial_len(head_dim);
    let [full_units, last_units] = step.units();
    for (head, out) in heads.zip(out.chunks_exact_mut(head_dim)) {
        let full = (0..full_units.n_chunks()).map(|chunk| {
            let unit = full_units.number(head, chunk);
            &full[unit * len..(unit + 1) * len]
        });
        let unit = last_units.number(head, 0);
        let last = &last[unit * len..(unit + 1) * len];
        merge_head(step.isa, head_dim, full.chain([last]), scratch, out)?;
    }
    Ok(())
}
