//! Every stage on its recorded input: the proof that the stages are right.

use super::Kv;
use super::case::{Case, Mode, Setup, Stage, Worst};
use super::recording::{Recording, Rows};
use super::rounding::History;
use anyhow::Result;
use ck_fused::{LayerError, Qkv, Scratch, Stages, Strategy};
use ck_isa::Isa;
use ck_ops::{CacheElement, KvCache, NewPosition};
use ck_testing::compare::{RelativeError, max_rel_err, max_rel_err_of_output};

/// Bound of a stage whose values are one quantized product or a norm.
const PRODUCT: f64 = 2e-6;

/// What llama.cpp's chained f32 angle adds to Q and K for every position.
const ANGLE: f64 = 1.2e-7;

/// Bound of the heads' results.
const ATTENTION: f64 = 1e-5;

/// All stages that the recording lets compare, with one level.
pub(super) fn cases<E: CacheElement>(
    recording: &Recording<'_>,
    kv: Kv,
    isa: Isa,
) -> Result<Vec<Case>> {
    let shape = recording.shape();
    let mut scratch = Scratch::<E>::new(shape, recording.n_tokens)?;
    let mut stages = Stages::new(&recording.layer, isa, &mut scratch)?;
    let mut cache = recording.cache::<E>()?;
    let mut new = NewPosition::<E>::new(shape.cache()?)?;
    let nothing = vec![0.0; shape.kv_dim()];
    let mut found = Found { worst: Vec::new(), history: History::new(kv) };
    for token in 0..recording.n_tokens {
        found.norm(recording, &mut stages, token);
        found.project(recording, &mut stages, token);
        found.attend(recording, &mut stages, &cache, token);
        found.output(recording, &mut stages, token);
        // The cache holds the recorded rows; without them it only counts the tokens.
        let row = |rows: &Option<Rows>| rows.as_ref().map(|rows| rows.row(token).to_vec());
        let k = row(&recording.k).unwrap_or_else(|| nothing.clone());
        let v = row(&recording.v).unwrap_or_else(|| nothing.clone());
        if let Err(error) = new.set(isa, &k, &v) {
            // Recorded rows that no cache can hold: no later token can be fed with them.
            found.failed(Stage::Attn, token, &error.into());
            break;
        }
        cache.append(&new)?;
    }
    let setup = Setup { isa, strategy: Strategy::Serial, threads: 1 };
    let case = |(stage, worst)| Case::new(&recording.name, Mode::Fed, setup, kv, stage, worst);
    Ok(found.worst.into_iter().map(case).collect())
}

/// The worst token of every stage that was compared.
struct Found {
    worst: Vec<(Stage, Worst)>,
    history: History,
}

impl Found {
    /// Adds one token's error to its stage.
    fn add(&mut self, stage: Stage, token: usize, error: RelativeError, bound: f64) {
        let index = self.worst.iter().position(|(other, _)| *other == stage);
        let index = index.unwrap_or_else(|| {
            self.worst.push((stage, Worst::NONE));
            self.worst.len() - 1
        });
        self.worst[index].1.add(token, error.column, error.value, bound);
    }

    /// Compares a stage's row with its recording, if there is one.
    fn compare(
        &mut self,
        stage: Stage,
        token: usize,
        got: &[f32],
        rows: Option<&Rows>,
        bound: f64,
    ) {
        if let Some(rows) = rows {
            let error = max_rel_err(got, rows.row(token), got.len());
            self.add(stage, token, error, bound);
        }
    }

    /// Counts a stage that refused its recorded input.
    fn failed(&mut self, stage: Stage, token: usize, error: &LayerError) {
        println!("  {} of token {token}: {error}", stage.name());
        let nothing = RelativeError { value: f64::INFINITY, row: 0, column: 0 };
        self.add(stage, token, nothing, PRODUCT);
    }

    fn norm<E: CacheElement>(
        &mut self,
        recording: &Recording<'_>,
        stages: &mut Stages<'_, '_, E>,
        token: usize,
    ) {
        if recording.norm.is_some() {
            match stages.norm(recording.input.row(token)) {
                Ok(got) => self.compare(Stage::Norm, token, got, recording.norm.as_ref(), PRODUCT),
                Err(error) => self.failed(Stage::Norm, token, &error),
            }
        }
    }

    fn project<E: CacheElement>(
        &mut self,
        recording: &Recording<'_>,
        stages: &mut Stages<'_, '_, E>,
        token: usize,
    ) {
        let Some(norm) = &recording.norm else { return };
        let rotated = PRODUCT + ANGLE * token as f64;
        match stages.project(norm.row(token), Some(&recording.rope), token) {
            Ok(Qkv { q, k, v }) => {
                self.compare(Stage::Q, token, q, recording.q.as_ref(), rotated);
                self.compare(Stage::K, token, k, recording.k.as_ref(), rotated);
                self.compare(Stage::V, token, v, recording.v.as_ref(), PRODUCT);
            }
            Err(error) => {
                let recorded =
                    [(Stage::Q, &recording.q), (Stage::K, &recording.k), (Stage::V, &recording.v)];
                for (stage, _) in recorded.into_iter().filter(|(_, rows)| rows.is_some()) {
                    self.failed(stage, token, &error);
                }
            }
        }
    }

    fn output<E: CacheElement>(
        &mut self,
        recording: &Recording<'_>,
        stages: &mut Stages<'_, '_, E>,
        token: usize,
    ) {
        let (Some(attn), Some(output)) = (&recording.attn, &recording.output) else { return };
        let input = recording.input.row(token);
        match stages.output(attn.row(token), Some(input)) {
            Ok(got) => {
                let error = max_rel_err_of_output(got, output.row(token), input, input.len());
                self.add(Stage::Output, token, error, PRODUCT);
            }
            Err(error) => self.failed(Stage::Output, token, &error),
        }
    }

    /// Attention, with the recorded K and V of all earlier tokens in the cache.
    fn attend<E: CacheElement>(
        &mut self,
        recording: &Recording<'_>,
        stages: &mut Stages<'_, '_, E>,
        cache: &KvCache<E>,
        token: usize,
    ) {
        let (Some(q), Some(k), Some(v)) = (&recording.q, &recording.k, &recording.v) else {
            return;
        };
        let expected = match self.history.expected(recording, token) {
            Ok(Some(expected)) => expected,
            Ok(None) => return,
            // Refused below, by name.
            Err(_) => vec![f32::NAN; q.row(token).len()],
        };
        match stages.attend(cache, q.row(token), k.row(token), v.row(token)) {
            Ok(got) => {
                let error = max_rel_err(got, &expected, got.len());
                self.add(Stage::Attn, token, error, ATTENTION);
            }
            Err(error) => self.failed(Stage::Attn, token, &error),
        }
    }
}
