//! One dispatch for every operation, as engines run a graph: the baseline of the others.

use crate::LayerError;
use crate::Projection;
use crate::phase;
use crate::runner::{Phase, Runner};
use crate::scratch::{Scratch, Shared};
use crate::step::Step;
use ck_ops::CacheElement;
use ck_threadpool::SharedSlice;

pub(super) fn run<E: CacheElement>(
    runner: &Runner<'_>,
    step: Step<'_, E>,
    scratch: &mut Scratch<E>,
    input: &[f32],
    residual: Option<&[f32]>,
) -> Result<(), LayerError> {
    let weights = step.layer.weights();
    phase::norm(step, input, &mut scratch.members[0])?;

    let shared = scratch.share();
    project(runner, step, &shared, &weights.q, &shared.q)?;
    let shared = scratch.share();
    project(runner, step, &shared, &weights.k, &shared.k)?;
    let shared = scratch.share();
    project(runner, step, &shared, &weights.v, &shared.v)?;

    let shared = scratch.share();
    runner.dispatch(|team| {
        phase::attend(team, step, &shared, shared.members.own(team))?;
        step.end(Phase::Attend, team);
        Ok(())
    })?;
    let shared = scratch.share();
    runner.dispatch(|team| {
        phase::merge(team, step, &shared, shared.members.own(team))?;
        step.end(Phase::Merge, team);
        Ok(())
    })?;

    let caller = &mut scratch.members[0];
    caller.attn_activations.quantize(step.isa, &scratch.attn)?;
    let shared = scratch.share();
    runner.dispatch(|team| {
        let caller = &shared.members.read(team)[0];
        phase::output(team, step, caller, residual, &shared.output)?;
        step.end(Phase::Output, team);
        Ok(())
    })
}

/// One projection of the caller's activations.
fn project<E: CacheElement>(
    runner: &Runner<'_>,
    step: Step<'_, E>,
    shared: &Shared<'_, E>,
    projection: &Projection<'_>,
    out: &SharedSlice<'_, f32>,
) -> Result<(), LayerError> {
    runner.dispatch(|team| {
        let activations = &shared.members.read(team)[0].activations;
        phase::product(step.isa, projection, activations, out.range(team), out.part(team))?;
        step.end(Phase::Project, team);
        Ok(())
    })
}
