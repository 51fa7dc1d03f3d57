//! One parallel loop for every operation, on rayon's current pool: the baseline as engines in Rust write it.

use crate::phase;
use crate::runner::Runner;
use crate::scratch::{PANEL_ROWS, Scratch};
use crate::step::Step;
use crate::units::Units;
use crate::{LayerError, Projection};
use ck_isa::Isa;
use ck_ops::{CacheElement, partial_len};
use ck_quant::QuantizedVector;
use rayon::prelude::*;

pub(super) fn run<E: CacheElement>(
    runner: &Runner<'_>,
    step: Step<'_, E>,
    scratch: &mut Scratch<E>,
    input: &[f32],
    residual: Option<&[f32]>,
) -> Result<(), LayerError> {
    let weights = step.layer.weights();
    let shape = step.layer.shape();
    let team = runner.team();
    let Scratch { members, qkv, partials, attn, output, .. } = scratch;
    phase::norm(step, input, &mut members[0])?;

    let (q, kv) = qkv.split_at_mut(shape.q_dim());
    let (k, v) = kv.split_at_mut(shape.kv_dim());
    for (projection, out) in [(&weights.q, &mut *q), (&weights.k, &mut *k), (&weights.v, &mut *v)] {
        product(step.isa, team, projection, &members[0].activations, out)?;
    }

    let (q, k, v) = (&*q, &*k, &*v);
    let members = &mut members[..team];
    members.par_iter_mut().try_for_each(|me| me.set_new(step, k, v))?;
    let len = partial_len(shape.head_dim());
    let (last, full) = partials.split_at_mut(shape.n_heads() * len);
    let full = &mut full[..step.units()[0].count() * len];
    for (units, partials) in step.units().into_iter().zip([&mut *full, &mut *last]) {
        let share = units.count().div_ceil(team).max(1);
        let shares = partials.par_chunks_mut(share * len).enumerate();
        members.par_iter_mut().zip(shares).try_for_each(|(me, (index, partials))| {
            let first = index * share;
            let mine: (Units, _) = (units, first..first + partials.len() / len);
            phase::attend_units(step, me, q, mine, partials)
        })?;
    }

    let share = shape.n_heads().div_ceil(team);
    let shares = attn.par_chunks_mut(share * shape.head_dim()).enumerate();
    members.par_iter_mut().zip(shares).try_for_each(|(me, (index, attn))| {
        let heads = index * share..index * share + attn.len() / shape.head_dim();
        phase::merge_heads(step, [&*full, &*last], &mut me.attend, heads, attn)
    })?;

    let caller = &mut members[0];
    caller.attn_activations.quantize(step.isa, attn)?;
    product(step.isa, team, &weights.o, &caller.attn_activations, output)?;
    match residual {
        Some(residual) => phase::add_residual(residual, output),
        None => Ok(()),
    }
}

/// All rows of one projection, in as many shares of whole panels as the team has members.
fn product(
    isa: Isa,
    team: usize,
    projection: &Projection<'_>,
    activations: &QuantizedVector,
    out: &mut [f32],
) -> Result<(), LayerError> {
    let share = out.len().div_ceil(PANEL_ROWS).div_ceil(team) * PANEL_ROWS;
    out.par_chunks_mut(share).enumerate().try_for_each(|(index, out)| {
        let first = index * share;
        phase::product(isa, projection, activations, first..first + out.len(), out)
    })
}
