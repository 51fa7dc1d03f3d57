//! The whole layer, token after token, in every setup: against its recording, and by bits against serial
//! scalar.

use super::Kv;
use super::case::{Case, Mode, Setup, Stage, Worst};
use super::recording::Recording;
use anyhow::Result;
use ck_fused::{Context, Runner, Scratch, Strategy};
use ck_isa::Isa;
use ck_ops::CacheElement;
use ck_testing::compare::max_rel_err_of_output;
use ck_threadpool::ThreadPool;

/// Bound of the output end to end: a last-bit difference in the norm can turn a quant by one step. Rounding
/// keys and values to f16 may add as much again (docs/numerics.md).
const fn end_to_end(kv: Kv) -> f64 {
    match kv {
        Kv::F32 => 1e-2,
        Kv::F16 => 2e-2,
    }
}

/// An end-to-end case and a case by bits for every setup.
pub(super) fn cases<E: CacheElement>(
    recording: &Recording<'_>,
    kv: Kv,
    setups: &[Setup],
) -> Result<Vec<Case>> {
    let largest = setups.iter().map(|setup| setup.threads).max().unwrap_or(1);
    let pool = ThreadPool::new(largest)?;
    let scalar = Setup { isa: Isa::Scalar, strategy: Strategy::Serial, threads: 1 };
    let definition = outputs::<E>(recording, &pool, scalar)?;
    let mut cases = Vec::new();
    for &setup in setups {
        let got = outputs::<E>(recording, &pool, setup)?;
        let case = |mode, worst| Case::new(&recording.name, mode, setup, kv, Stage::Output, worst);
        if let Some(worst) = against_recording(recording, kv, &got) {
            cases.push(case(Mode::EndToEnd, worst));
        }
        cases.push(case(Mode::Bits, by_bits(&got, &definition)));
    }
    Ok(cases)
}

/// The outputs of all tokens, one after the other.
fn outputs<E: CacheElement>(
    recording: &Recording<'_>,
    pool: &ThreadPool,
    setup: Setup,
) -> Result<Vec<Vec<f32>>> {
    let runner =
        Runner::new(setup.isa, pool).with_strategy(setup.strategy).with_team(setup.threads);
    let mut cache = recording.cache::<E>()?;
    let mut scratch = Scratch::for_team(recording.shape(), recording.n_tokens, setup.threads)?;
    let mut outputs = Vec::with_capacity(recording.n_tokens);
    for token in 0..recording.n_tokens {
        let input = recording.input.row(token);
        let mut output = vec![f32::NAN; input.len()];
        let context =
            Context { rope: Some(&recording.rope), cache: &mut cache, scratch: &mut scratch };
        if let Err(error) =
            recording.layer.decode(&runner, context, input, Some(input), &mut output)
        {
            // The row stays NaN, which no comparison lets pass.
            println!("  {} {}, token {token}: {error}", setup.strategy, setup.isa);
        }
        outputs.push(output);
    }
    Ok(outputs)
}

fn against_recording(recording: &Recording<'_>, kv: Kv, got: &[Vec<f32>]) -> Option<Worst> {
    let recorded = recording.output.as_ref()?;
    let mut worst = Worst::NONE;
    for (token, got) in got.iter().enumerate() {
        let input = recording.input.row(token);
        let error = max_rel_err_of_output(got, recorded.row(token), input, input.len());
        worst.add(token, error.column, error.value, end_to_end(kv));
    }
    Some(worst)
}

/// An error of 0 where all bits are equal, else 1 at the first that is not.
fn by_bits(got: &[Vec<f32>], definition: &[Vec<f32>]) -> Worst {
    let mut worst = Worst::NONE;
    for (token, (got, definition)) in got.iter().zip(definition).enumerate() {
        let differs = |(x, y): (&f32, &f32)| x.to_bits() != y.to_bits();
        match got.iter().zip(definition).position(differs) {
            None => worst.add(token, 0, 0.0, 0.0),
            Some(element) => worst.add(token, element, 1.0, 0.0),
        }
    }
    worst
}
