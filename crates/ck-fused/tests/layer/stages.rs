//! Every stage against the `f64` oracle, within the derived bounds.

use crate::sample::{Memory, NO_ROPE, Sample, YARN};
use ck_fused::{Qkv, Stages};
use ck_ops::{CHUNK, CacheElement, Q8_0};
use ck_quant::Isa;
use ck_testing::bounds::{self, AttentionErrors};
use ck_testing::compare::{Failures, check_within};
use ck_testing::generate::{Biases, Formats, Rng, Values, random_layer, sizes};
use ck_testing::oracle::{
    self, BLOCK, CacheRounding, Format, HeadNorm, Layer, Pairing, Projection, Rope, Shape, Sum,
    decode_row, quantize_row, widen,
};
use ck_testing::run::all_or_few;
use half::f16;
use proptest::prelude::*;

/// The products of a projection, in the oracle's quantization of `activations`.
fn sums(projection: &Projection, activations: &[f32]) -> Vec<Sum> {
    let quantized = quantize_row(Format::Q8_0, activations).expect("in range");
    projection.sums(&decode_row(Format::Q8_0, &quantized))
}

fn values(sums: &[Sum]) -> Vec<f64> {
    sums.iter().map(|sum| sum.value).collect()
}

fn errors(sums: &[Sum]) -> Vec<f64> {
    sums.iter().map(bounds::sequential_sum).collect()
}

/// How far a row of heads may be off after their norm.
fn norm_errors(norm: &HeadNorm, row: &[f64], errors: &[f64]) -> Vec<f64> {
    let gamma = widen(&norm.gamma);
    let heads = row.chunks_exact(gamma.len()).zip(errors.chunks_exact(gamma.len()));
    let bounds = heads.flat_map(|(head, errors)| {
        let exact = oracle::rmsnorm(head, &gamma, norm.eps).expect("finite");
        bounds::rmsnorm_of_errors(&exact, head, errors, &gamma, norm.eps)
    });
    bounds.collect()
}

/// A sample with the level and the memory that its stages run with, and what they are compared with.
struct Bench<'s, E: CacheElement> {
    sample: &'s Sample,
    truth: &'s Sample,
    isa: Isa,
    memory: Memory<E>,
}

impl<'s, E: CacheElement> Bench<'s, E> {
    fn new(sample: &'s Sample, isa: Isa, capacity: usize) -> Self {
        Self { sample, truth: sample, isa, memory: Memory::new(sample, capacity) }
    }

    /// Runs `stage` with the stages of the layer.
    fn run<R>(&mut self, stage: impl FnOnce(&mut Stages<'_, '_, E>) -> R) -> R {
        let layer = self.sample.layer();
        let mut stages = Stages::new(&layer, self.isa, &mut self.memory.scratch).expect("fits");
        stage(&mut stages)
    }

    fn norm(&mut self, input: &[f32]) -> Result<(), String> {
        let got = self.run(|stages| stages.norm(input).expect("finite").to_vec());
        let weights = &self.truth.weights;
        let gamma = widen(&weights.gamma);
        let exact = oracle::rmsnorm(&widen(input), &gamma, weights.eps).expect("finite");
        check_within(&got, &exact.values, &bounds::rmsnorm(&exact, &gamma, weights.eps))
    }

    fn project(&mut self, normed: &[f32], position: usize) -> Result<(), String> {
        let rope = self.sample.table(position + 1);
        let (q, k, v) = self.run(|stages| {
            let Qkv { q, k, v } = stages.project(normed, rope.as_ref(), position).expect("finite");
            (q.to_vec(), k.to_vec(), v.to_vec())
        });
        let weights = &self.truth.weights;
        for (name, projection, norm, got) in
            [("q", &weights.q, &weights.q_norm, &q), ("k", &weights.k, &weights.k_norm, &k)]
        {
            let sums = sums(projection, normed);
            let (mut exact, mut errors) = (values(&sums), errors(&sums));
            if let Some(norm) = norm {
                errors = norm_errors(norm, &exact, &errors);
                norm.apply(&mut exact).expect("finite");
            }
            let head_dim = weights.shape.head_dim;
            let rope = &self.truth.rope;
            let heads = exact.chunks_exact(head_dim).zip(errors.chunks_exact(head_dim));
            let bounds: Vec<f64> = heads
                .flat_map(|(head, errors)| bounds::rope(rope, position, head, errors))
                .collect();
            rope.rotate_row(position, head_dim, &mut exact);
            check_within(got, &exact, &bounds).map_err(|error| format!("{name}: {error}"))?;
        }
        let sums = sums(&weights.v, normed);
        check_within(&v, &values(&sums), &errors(&sums)).map_err(|error| format!("v: {error}"))
    }

    /// Fills the cache with random rows up to `positions - 1` and attends from the last one.
    fn attend(
        &mut self,
        rng: &mut Rng,
        positions: usize,
        rounding: CacheRounding,
    ) -> Result<(), String> {
        let shape = self.sample.weights.shape;
        let mut oracle = self.oracle(rounding);
        let mut row = |width| Values::Normal.row(rng, width);
        self.memory.cache.clear();
        for _ in 1..positions {
            let (k, v) = (row(shape.kv_width()), row(shape.kv_width()));
            oracle.store(&widen(&k), &widen(&v)).expect("in range");
            self.memory.store(&k, &v);
        }
        let (q, k, v) = (row(shape.q_width()), row(shape.kv_width()), row(shape.kv_width()));
        oracle.store(&widen(&k), &widen(&v)).expect("in range");

        let layer = self.sample.layer();
        let Memory { cache, scratch, .. } = &mut self.memory;
        let mut stages = Stages::new(&layer, self.isa, scratch).expect("fits");
        let got = stages.attend(cache, &q, &k, &v).expect("finite");
        assert_eq!(cache.len(), positions - 1, "the cache is only read");
        let bounds = bounds::attention(
            &oracle.attention,
            &attention_errors(positions),
            &widen(&q),
            oracle.keys(),
            oracle.values(),
        );
        check_within(got, &oracle.attend(&widen(&q)), &bounds)
    }

    fn output(&mut self, attn: &[f32], residual: Option<&[f32]>) -> Result<(), String> {
        let got = self.run(|stages| stages.output(attn, residual).expect("finite").to_vec());
        let mut sums = sums(&self.truth.weights.o, attn);
        if let Some(residual) = residual {
            for (sum, &residual) in sums.iter_mut().zip(residual) {
                *sum = sum.plus(f64::from(residual));
            }
        }
        check_within(&got, &values(&sums), &errors(&sums))
    }

    fn oracle(&self, rounding: CacheRounding) -> Layer {
        Layer::new(self.truth.weights.clone(), self.truth.rope, rounding).expect("a good shape")
    }

    /// All stages on random rows, attention over `positions` positions.
    fn all(&mut self, seed: u64, positions: usize, rounding: CacheRounding) -> Result<(), String> {
        let mut rng = Rng::new(seed);
        let shape = self.sample.weights.shape;
        let input = Values::HugeActivations.row(&mut rng, shape.embed_dim);
        let normed = Values::Normal.row(&mut rng, shape.embed_dim);
        let attn = Values::Normal.row(&mut rng, shape.q_width());
        let stage = |name| move |error: String| format!("{name}: {error}");
        self.norm(&input).map_err(stage("norm"))?;
        self.project(&normed, positions - 1).map_err(stage("project"))?;
        self.attend(&mut rng, positions, rounding).map_err(stage("attend"))?;
        self.output(&attn, None).map_err(stage("output without a residual"))?;
        self.output(&attn, Some(&input)).map_err(stage("output"))
    }
}

/// What docs/numerics.md states: `exp` within one ulp; a weight passes 16 additions to its partial sum and 4
/// halvings, a weighted value one for every position of a chunk; merging adds one each, and one rescaling.
fn attention_errors(positions: usize) -> AttentionErrors {
    let merges = positions.div_ceil(CHUNK) - 1;
    AttentionErrors {
        exp: 2.0 * bounds::U,
        tanh: 2.5 * bounds::U,
        additions: CHUNK.min(positions).max(20) + merges,
        rescales: merges,
        cache: CacheRounding::None,
    }
}

/// Compares all stages on every level, with every type of cache that can hold the heads.
fn check(sample: &Sample, seed: u64, positions: usize) -> Result<(), String> {
    for isa in Isa::available() {
        let level = |error| format!("{isa:?}: {error}");
        Bench::<f32>::new(sample, isa, positions)
            .all(seed, positions, CacheRounding::None)
            .map_err(level)?;
        Bench::<f16>::new(sample, isa, positions)
            .all(seed, positions, CacheRounding::F16)
            .map_err(level)?;
        if sample.weights.shape.head_dim.is_multiple_of(BLOCK) {
            Bench::<Q8_0>::new(sample, isa, positions)
                .all(seed, positions, CacheRounding::Q8_0)
                .map_err(level)?;
        }
    }
    Ok(())
}

/// The fewest heads, in groups of two, whose width is whole blocks.
fn shape_of(head_dim: usize) -> Shape {
    let n_heads = [2, 4, 8, 16].into_iter().find(|n| (n * head_dim).is_multiple_of(32));
    let n_heads = n_heads.expect("an even head dimension");
    Shape { embed_dim: 96, n_heads, n_kv_heads: n_heads / 2, head_dim }
}

#[test]
fn every_head_dimension_at_the_borders_of_chunks() {
    const ALL: [usize; 6] = [1, 2, 17, CHUNK - 1, CHUNK, CHUNK + 1];
    let mut failures = Failures::default();
    for head_dim in sizes::HEAD_DIMS {
        for &positions in all_or_few(&ALL[..], &[1, 17, CHUNK + 1]) {
            for pairing in Pairing::ALL {
                let rope = Rope::new(pairing, head_dim, 1e6);
                let sample = Sample::new(1, shape_of(head_dim), rope);
                let context = format!("head dim {head_dim}, {positions} positions, {pairing:?}");
                failures.add(context, check(&sample, 2, positions));
            }
        }
    }
    failures.assert_none();
}

#[test]
fn every_combination_of_formats_and_biases() {
    let mut failures = Failures::default();
    for formats in Formats::all() {
        for set in 0..16 {
            let [q, k, v, o] = [1, 2, 4, 8].map(|bit| set & bit != 0);
            let biases = Biases { q, k, v, o };
            let weights = random_layer(3, shape_of(64), formats, biases);
            let rope = Rope::new(Pairing::Interleaved, 64, 1e4);
            let sample = Sample { weights, rope };
            failures.add(format!("{formats:?} {biases:?}"), check(&sample, 4, 5));
        }
    }
    failures.assert_none();
}

#[test]
fn partial_rotations_and_none() {
    let mut failures = Failures::default();
    for pairing in Pairing::ALL {
        for width in [0, 2, 4, 34, 48, 94, 96] {
            let rope = Rope::new(pairing, width, 1e4);
            let sample = Sample::new(5, shape_of(96), rope);
            for positions in [1, 2, all_or_few(841, 300)] {
                let context = format!("{pairing:?} of {width} at {positions}");
                failures.add(context, check(&sample, 6, positions));
            }
        }
    }
    failures.assert_none();
}

#[test]
fn norms_of_heads_and_scalings() {
    let mut failures = Failures::default();
    for head_dim in [32, 64, 96] {
        for rope in [NO_ROPE, YARN] {
            let rope = Rope { width: rope.width.min(head_dim), ..rope };
            let sample = Sample::new(12, shape_of(head_dim), rope).with_head_norms(13);
            for positions in [1, 2, 40, all_or_few(841, 300)] {
                let context = format!("head dim {head_dim}, {rope:?}, {positions} positions");
                failures.add(context, check(&sample, 14, positions));
            }
        }
    }
    failures.assert_none();
}

#[test]
fn every_grouping_of_heads() {
    let mut failures = Failures::default();
    for (n_heads, n_kv_heads) in sizes::HEAD_COUNTS {
        let shape = Shape { embed_dim: 64, n_heads, n_kv_heads, head_dim: 32 };
        let rope = Rope { width: 32, ..NO_ROPE };
        let sample = Sample::new(7, shape, rope);
        failures.add(format!("{n_heads} on {n_kv_heads}"), check(&sample, 8, 40));
    }
    failures.assert_none();
}

/// A bound that lets a wrong layer pass shows nothing: one changed number of each stage is seen.
#[test]
fn the_bounds_see_one_changed_number_of_every_stage() {
    let truth = Sample::new(9, shape_of(64), Rope { width: 64, ..YARN }).with_head_norms(15);
    assert_eq!(check(&truth, 10, 300), Ok(()));
    let mut rng = Rng::new(11);
    let row = Values::Normal.row(&mut rng, truth.weights.shape.embed_dim);
    let attn = Values::Normal.row(&mut rng, truth.weights.shape.q_width());
    // The lowest bit of a quant in the last block of the last row.
    let quant = |projection: &mut Projection| {
        *projection.bytes.last_mut().expect("bytes") ^= 0x10;
    };
    let bias = |projection: &mut Projection| {
        *projection.bias.as_mut().and_then(|bias| bias.last_mut()).expect("a bias") += 1e-3;
    };
    let seen = |name: &str, change: &dyn Fn(&mut oracle::LayerWeights), stage: &str| {
        let mut faulty = truth.clone();
        change(&mut faulty.weights);
        let mut bench = Bench::<f32>::new(&faulty, Isa::Scalar, 300);
        bench.truth = &truth;
        let result = match stage {
            "norm" => bench.norm(&row),
            "output" => bench.output(&attn, Some(&row)),
            _ => bench.project(&row, 299),
        };
        let report = result.expect_err(name);
        assert!(["norm", "output"].contains(&stage) || report.starts_with(stage), "{report}");
    };
    seen("gamma", &|weights| weights.gamma[95] *= 1.0 + 1e-6, "norm");
    seen("epsilon", &|weights| weights.eps *= 2.0, "norm");
    seen("a quant of Q", &|weights| quant(&mut weights.q), "q");
    seen("a bias of Q", &|weights| bias(&mut weights.q), "q");
    seen("a quant of K", &|weights| quant(&mut weights.k), "k");
    seen("a bias of K", &|weights| bias(&mut weights.k), "k");
    seen("a quant of V", &|weights| quant(&mut weights.v), "v");
    seen("a bias of V", &|weights| bias(&mut weights.v), "v");
    let norm = |norm: &mut Option<HeadNorm>, change: &dyn Fn(&mut HeadNorm)| {
        change(norm.as_mut().expect("a norm"));
    };
    seen("gamma of Q", &|w| norm(&mut w.q_norm, &|norm| norm.gamma[63] *= 1.0 + 1e-4), "q");
    seen("gamma of K", &|w| norm(&mut w.k_norm, &|norm| norm.gamma[63] *= 1.0 + 1e-4), "k");
    seen("epsilon of Q", &|w| norm(&mut w.q_norm, &|norm| norm.eps += 1e-3), "q");
    seen("epsilon of K", &|w| norm(&mut w.k_norm, &|norm| norm.eps += 1e-3), "k");
    seen("no norm of Q", &|w| w.q_norm = None, "q");
    seen("no norm of K", &|w| w.k_norm = None, "k");
    seen("the norm of K for Q", &|w| w.q_norm.clone_from(&w.k_norm), "q");
    seen("a quant of O", &|weights| quant(&mut weights.o), "output");
    seen("a bias of O", &|weights| bias(&mut weights.o), "output");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn random_shapes(
        half_dim in 1usize..=64,
        group in 1usize..4,
        kv_heads in 1usize..4,
        embed_blocks in 1usize..6,
        rotated in 0usize..=64,
        interleaved: bool,
        positions in 1usize..300,
        formats in 0usize..16,
        biases in 0usize..16,
        seed: u64,
    ) {
        let head_dim = 2 * half_dim;
        // As many KV heads as make the width of all query heads whole blocks.
        let times = (0..5).map(|k| 1usize << k).find(|t| (t * kv_heads * group * head_dim) % 32 == 0);
        let n_kv_heads = kv_heads * times.expect("head_dim is even");
        let embed_dim = 32 * embed_blocks;
        let shape = Shape { embed_dim, n_heads: n_kv_heads * group, n_kv_heads, head_dim };
        let [q, k, v, o] = [1, 2, 4, 8].map(|bit| biases & bit != 0);
        let weights = random_layer(seed, shape, Formats::all()[formats], Biases { q, k, v, o });
        let pairing = Pairing::ALL[usize::from(interleaved)];
        let rope = Rope::new(pairing, 2 * rotated.min(half_dim), 1e4);
        prop_assert_eq!(check(&Sample { weights, rope }, seed ^ 1, positions), Ok(()));
    }
}
