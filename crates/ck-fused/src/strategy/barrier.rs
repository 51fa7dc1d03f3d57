//! One dispatch, with a barrier before every phase that reads what other members wrote.
//!
//! With a team of one this is the serial strategy: the phases in a row, and barriers that do nothing.

use crate::LayerError;
use crate::phase;
use crate::runner::{Phase, Runner};
use crate::scratch::{Scratch, Shared};
use crate::step::Step;
use ck_ops::CacheElement;
use ck_threadpool::{Plan, SharedSlice, Team};

pub(super) fn run<E: CacheElement>(
    runner: &Runner<'_>,
    step: Step<'_, E>,
    scratch: &mut Scratch<E>,
    input: &[f32],
    residual: Option<&[f32]>,
) -> Result<(), LayerError> {
    let plan = Plan::new();
    let shared = scratch.share_planned(step, &plan);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DecodeLayer, LayerShape, LayerWeights, Norm, Projection, Projections};
    use ck_isa::Isa;
    use ck_ops::KvCache;
    use ck_quant::{Format, Matrix};
    use ck_threadpool::ThreadPool;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// The phases of [`block`] with one of its three barriers left out.
    fn without_barrier(
        missing: usize,
        team: &mut Team<'_>,
        step: Step<'_, f32>,
        shared: &Shared<'_, f32>,
        input: &[f32],
    ) -> Result<(), LayerError> {
        let mut number = 0;
        let mut barrier = |team: &mut Team<'_>| {
            number += 1;
            if number == missing { Ok(()) } else { team.try_barrier() }
        };
        let me = shared.members.own(team);
        phase::norm(step, input, me)?;
        phase::project(team, step, shared, me)?;
        barrier(team)?;
        phase::attend(team, step, shared, shared.members.own(team))?;
        barrier(team)?;
        phase::merge(team, step, shared, shared.members.own(team))?;
        barrier(team)?;
        let me = shared.members.own(team);
        me.attn_activations.quantize(step.isa, shared.attn.read(team))?;
        phase::output(team, step, me, None, &shared.output)
    }

    // Case B43: a missing barrier does not wait for hundreds of thousands of calls to show itself. The shared
    // slices refuse a phase that reads what another member may still write.
    #[test]
    fn a_block_without_one_of_its_barriers_does_not_run() {
        let shape = LayerShape::new(64, 2, 1, 32).unwrap();
        let bytes = vec![0; Format::Q5_0.matrix_bytes(64, 64).unwrap()];
        let projection = |rows: usize| {
            let bytes = &bytes[..Format::Q5_0.matrix_bytes(rows, 64).unwrap()];
            Projection::new(Matrix::new(Format::Q5_0, rows, 64, bytes).unwrap())
        };
        let weights = LayerWeights::new(
            Norm::new(vec![1.0; 64], 1e-6),
            Projections {
                q: projection(64),
                k: projection(32),
                v: projection(32),
                o: projection(64),
            },
        );
        let layer = DecodeLayer::new(shape, weights).unwrap();
        let cache = KvCache::<f32>::with_capacity(shape.cache().unwrap(), 1).unwrap();
        let pool = ThreadPool::new(2).unwrap();
        let input = [1.0; 64];
        for missing in 0..=3 {
            for planned in [false, true] {
                let mut scratch = Scratch::for_team(shape, 1, 2).unwrap();
                let runner =
                    Runner::new(Isa::Scalar, &pool).with_strategy(crate::Strategy::Barrier);
                let step = runner.step(&layer, None, &cache);
                let plan = Plan::new();
                let shared =
                    if planned { scratch.share_planned(step, &plan) } else { scratch.share() };
                let ran = catch_unwind(AssertUnwindSafe(|| {
                    runner.dispatch(|team| without_barrier(missing, team, step, &shared, &input))
                }));
                let whole = matches!(ran, Ok(Ok(())));
                assert_eq!(whole, missing == 0, "without barrier {missing}, planned: {planned}");
            }
        }
    }
}
