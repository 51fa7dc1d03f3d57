//! Three dispatches: a dispatch ends where the barrier strategy would have its first and second barrier.

use crate::LayerError;
use crate::phase;
use crate::runner::{Phase, Runner};
use crate::scratch::Scratch;
use crate::step::Step;
use ck_ops::CacheElement;

pub(super) fn run<E: CacheElement>(
    runner: &Runner<'_>,
    step: Step<'_, E>,
    scratch: &mut Scratch<E>,
    input: &[f32],
    residual: Option<&[f32]>,
) -> Result<(), LayerError> {
    let shared = scratch.share();
    runner.dispatch(|team| {
        let me = shared.members.own(team);
        phase::norm(step, input, me)?;
        phase::project(team, step, &shared, me)?;
        step.end(Phase::Project, team);
        Ok(())
    })?;

    let shared = scratch.share();
    runner.dispatch(|team| {
        phase::attend(team, step, &shared, shared.members.own(team))?;
        step.end(Phase::Attend, team);
        Ok(())
    })?;

    let shared = scratch.share();
    runner.dispatch(|team| {
        let me = shared.members.own(team);
        phase::merge_all(team, step, &shared, me)?;
        me.attn_activations.quantize(step.isa, &me.attn)?;
        phase::output(team, step, me, residual, &shared.output)?;
        step.end(Phase::Output, team);
        Ok(())
    })
}
