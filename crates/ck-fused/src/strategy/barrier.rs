//! One dispatch, with a barrier before every phase that reads what other members wrote.
//!
//! With a team of one this is the serial strategy: the phases in a row, and barriers that do nothing.

use crate::LayerError;
use crate::phase;
use crate::runner::{Phase, Runner};
use crate::scratch::{Scratch, Shared};
use crate::step::Step;
use ck_ops::CacheElement;
use ck_threadpool::{SharedSlice, Team};

pub(super) fn run<E: CacheElement>(
    runner: &Runner<'_>,
    step: Step<'_, E>,
    scratch: &mut Scratch<E>,
    input: &[f32],
    residual: Option<&[f32]>,
) -> Result<(), LayerError> {
    let shared = scratch.share();
    let residual = residual.map(Source::Given);
    let ends = Ends { input: Source::Given(input), residual, output: &shared.output };
    runner.dispatch(|team| block(team, step, &shared, ends))
}

/// Where a block's numbers come from and go to.
#[derive(Clone, Copy)]
pub(crate) struct Ends<'s> {
    pub(crate) input: Source<'s>,
    pub(crate) residual: Option<Source<'s>>,
    pub(crate) output: &'s SharedSlice<'s, f32>,
}

/// A hidden state that every member reads: the caller's, or what the team has computed.
#[derive(Clone, Copy)]
pub(crate) enum Source<'s> {
    Given(&'s [f32]),
    Shared(&'s SharedSlice<'s, f32>),
}

impl<'s> Source<'s> {
    fn read<'t>(self, team: &'t Team<'_>) -> &'t [f32]
    where
        's: 't,
    {
        match self {
            Self::Given(slice) => slice,
            Self::Shared(slice) => slice.read(team),
        }
    }
}

/// All phases of one block, on one member.
pub(crate) fn block<E: CacheElement>(
    team: &mut Team<'_>,
    step: Step<'_, E>,
    shared: &Shared<'_, E>,
    ends: Ends<'_>,
) -> Result<(), LayerError> {
    let me = shared.members.own(team);
    phase::norm(step, ends.input.read(team), me)?;
    phase::project(team, step, shared, me)?;
    step.end(Phase::Project, team);

    team.try_barrier()?;
    phase::attend(team, step, shared, shared.members.own(team))?;
    step.end(Phase::Attend, team);

    team.try_barrier()?;
    phase::merge(team, step, shared, shared.members.own(team))?;
    step.end(Phase::Merge, team);

    team.try_barrier()?;
    let me = shared.members.own(team);
    me.attn_activations.quantize(step.isa, shared.attn.read(team))?;
    let residual = ends.residual.map(|residual| residual.read(team));
    phase::output(team, step, me, residual, ends.output)?;
    step.end(Phase::Output, team);
    Ok(())
}
