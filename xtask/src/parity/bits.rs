//! The whole layer, token after token, in every setup: against its recording, and by bits against serial
//! scalar.

use super::Kv;
use super::case::{Case, Mode, Setup, Stage, Worst};
use super::recording::Recording;
use super::rounding::expected_outputs;
use anyhow::Result;
use ck_fused::{DecodeContext, DecodeLayer, Runner, Scratch, Strategy};
use ck_isa::Isa;
use ck_ops::CacheElement;
use ck_testing::compare::max_rel_err_of_output;
use ck_threadpool::ThreadPool;
use rayon::prelude::*;

/// Bound of the output end to end: a last-bit difference in the norm can turn a quant by one step. With a cache of
/// Q8_0 all quants of the O projection are drawn anew (docs/numerics.md).
const fn end_to_end(kv: Kv) -> f64 {
    match kv {
        Kv::F32 | Kv::F16 => 1e-2,
        Kv::Q8_0 => 2e-2,
    }
}

/// An end-to-end case and a case by bits for every setup.
pub(super) fn cases<E: CacheElement>(
    recording: &Recording<'_>,
    kv: Kv,
    setups: &[Setup],
) -> Result<Vec<Case>> {
    let scalar = Setup { isa: Isa::Scalar, strategy: Strategy::Serial, threads: 1 };
    let expected = expected_outputs(recording, kv)?;
    let definition = outputs::<E>(recording, &recording.layer, scalar)?;
    let cases = setups.par_iter().map(|&setup| {
        // The serial strategy reads the weights as they lie in the file, the others packed panels.
        let layer =
            if setup.strategy == Strategy::Serial { &recording.layer } else { &recording.packed };
        let got = outputs::<E>(recording, layer, setup)?;
        let case = |mode, worst| Case::new(&recording.name, mode, setup, kv, Stage::Output, worst);
        let end_to_end = expected.as_ref().map(|expected| {
            case(Mode::EndToEnd, against_recording(recording, expected, &got, end_to_end(kv)))
        });
        Ok(end_to_end.into_iter().chain([case(Mode::Bits, by_bits(&got, &definition))]))
    });
    Ok(cases.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Tokens that the parallel strategies decode in plain scalar code, which is hundreds of times as slow as the
/// levels. Those decode every token with every strategy, and serial scalar code does too.
const SCALAR_TOKENS: usize = 128;

/// How many tokens of a recording a setup decodes.
fn tokens(recording: &Recording<'_>, setup: Setup) -> usize {
    let all = recording.n_tokens;
    if setup.isa == Isa::Scalar && setup.strategy != Strategy::Serial {
        all.min(SCALAR_TOKENS)
    } else {
        all
    }
}

/// The outputs of its tokens, one after the other.
fn outputs<E: CacheElement>(
    recording: &Recording<'_>,
    layer: &DecodeLayer<'_>,
    setup: Setup,
) -> Result<Vec<Vec<f32>>> {
    let pool = ThreadPool::new(setup.threads)?;
    let runner = Runner::new(setup.isa, &pool).with_strategy(setup.strategy);
    let mut cache = recording.cache::<E>()?;
    let mut scratch = Scratch::for_team(recording.shape(), recording.n_tokens, setup.threads)?;
    let tokens = tokens(recording, setup);
    let mut outputs = Vec::with_capacity(tokens);
    for token in 0..tokens {
        let input = recording.input.row(token);
        let mut output = vec![f32::NAN; input.len()];
        let context =
            DecodeContext { rope: Some(&recording.rope), cache: &mut cache, scratch: &mut scratch };
        if let Err(error) = layer.decode(&runner, context, input, Some(input), &mut output) {
            // The row stays NaN, which no comparison lets pass.
            println!("  {} {}, token {token}: {error}", setup.strategy, setup.isa);
        }
        outputs.push(output);
    }
    Ok(outputs)
}

/// The worst token beside what the recording says of this type of cache.
fn against_recording(
    recording: &Recording<'_>,
    expected: &[Vec<f32>],
    got: &[Vec<f32>],
    bound: f64,
) -> Worst {
    let mut worst = Worst::NONE;
    for (token, (got, expected)) in got.iter().zip(expected).enumerate() {
        let input = recording.input.row(token);
        let error = max_rel_err_of_output(got, expected, input, input.len());
        worst.add(token, error.column, error.value, bound);
    }
    worst
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
