//! Stacks of layers in one dispatch: the bits of the layers one by one, and all caches or none.

use super::team::{LARGEST, stored};
use crate::sample::Sample;
use ck_fused::{
    DecodeContext, DecodeLayer, LayerError, Runner, Scratch, StackContext, StackScratch, Strategy,
    decode_stack,
};
use ck_ops::{KvCache, RopeTable};
use ck_quant::Isa;
use ck_testing::compare::assert_bits_eq;
use ck_threadpool::{SharedSlice, Team, ThreadPool};

const LAYERS: usize = 3;
const POSITIONS: usize = 5;

/// Layers of one shape, their rotation and their caches.
struct Model<'s> {
    layers: Vec<DecodeLayer<'s>>,
    rope: Option<RopeTable>,
    caches: Vec<KvCache<f32>>,
    scratch: StackScratch<f32>,
}

impl<'s> Model<'s> {
    fn new(samples: &'s [Sample]) -> Self {
        let shape = samples[0].shape();
        let cache = |_: &Sample| KvCache::with_capacity(shape.cache().unwrap(), POSITIONS).unwrap();
        Self {
            layers: samples.iter().map(Sample::layer).collect(),
            rope: samples[0].table(POSITIONS),
            caches: samples.iter().map(cache).collect(),
            scratch: StackScratch::new(shape, samples.len(), POSITIONS, LARGEST).unwrap(),
        }
    }

    fn decode(&mut self, runner: &Runner<'_>, hidden: &mut [f32]) -> Result<(), LayerError> {
        self.decode_with(runner, hidden, feed_forward)
    }

    fn decode_with<F>(
        &mut self,
        runner: &Runner<'_>,
        hidden: &mut [f32],
        between: F,
    ) -> Result<(), LayerError>
    where
        F: Fn(&mut Team<'_>, usize, &SharedSlice<'_, f32>) -> Result<(), LayerError> + Sync,
    {
        let context = StackContext {
            rope: self.rope.as_ref(),
            caches: &mut self.caches,
            scratch: &mut self.scratch,
        };
        decode_stack(runner, &self.layers, context, hidden, between)
    }

    fn stored(&self) -> Vec<u32> {
        self.caches.iter().flat_map(stored).collect()
    }
}

/// Stands for the rest of a layer: every channel takes half of the channel before it, in two phases.
fn feed_forward(
    team: &mut Team<'_>,
    layer: usize,
    hidden: &SharedSlice<'_, f32>,
) -> Result<(), LayerError> {
    let range = hidden.range(team);
    let before = hidden.read(team);
    let halves: Vec<f32> = range.map(|i| half(before, i, layer)).collect();
    team.try_barrier()?;
    for (x, half) in hidden.part(team).iter_mut().zip(halves) {
        *x += half;
    }
    Ok(())
}

fn half(hidden: &[f32], channel: usize, layer: usize) -> f32 {
    0.5 * hidden[(channel + hidden.len() - 1 - layer) % hidden.len()]
}

/// The same layers one by one, serially.
fn one_by_one(samples: &[Sample], tokens: usize) -> (Vec<Vec<f32>>, Vec<u32>) {
    let mut model = Model::new(samples);
    let mut scratch = Scratch::new(samples[0].shape(), POSITIONS).unwrap();
    let mut outputs = Vec::new();
    for token in 0..tokens {
        let mut hidden = samples[0].input(token);
        for (number, (layer, cache)) in model.layers.iter().zip(&mut model.caches).enumerate() {
            let context = DecodeContext { rope: model.rope.as_ref(), cache, scratch: &mut scratch };
            layer.decode_in_place(&Runner::serial(Isa::Scalar), context, &mut hidden).unwrap();
            let before = hidden.clone();
            for (i, x) in hidden.iter_mut().enumerate() {
                *x += half(&before, i, number);
            }
        }
        outputs.push(hidden);
    }
    (outputs, model.stored())
}

fn samples(layers: usize) -> Vec<Sample> {
    let sample = |layer| {
        let sample = Sample::small(20 + layer);
        // Norms of heads are a layer's own: every second one has them.
        if layer % 2 == 1 { sample.with_head_norms(layer) } else { sample }
    };
    (0..layers as u64).map(sample).collect()
}

#[test]
fn a_stack_gives_the_bits_of_its_layers_one_by_one() {
    let pool = ThreadPool::new(LARGEST).unwrap();
    for layers in [1, 2, LAYERS] {
        let samples = samples(layers);
        let (right, right_stored) = one_by_one(&samples, POSITIONS);
        let teams = Isa::available().flat_map(|isa| (1..=LARGEST).map(move |team| (isa, team)));
        for (isa, team) in teams {
            let runner = Runner::new(isa, &pool).with_team(team).with_strategy(Strategy::Barrier);
            let mut model = Model::new(&samples);
            for (token, right) in right.iter().enumerate() {
                let mut hidden = samples[0].input(token);
                model.decode(&runner, &mut hidden).unwrap();
                assert_bits_eq(&format!("{layers} layers, {isa} on {team}"), &hidden, right);
            }
            assert!(model.stored() == right_stored, "{layers} layers, {isa} on {team}");
        }
    }
}

#[test]
fn a_stack_without_layers_changes_nothing() {
    let sample = [Sample::small(1)];
    let mut model = Model::new(&sample);
    model.layers.clear();
    model.caches.clear();
    let mut hidden = sample[0].input(0);
    model.decode(&Runner::serial(Isa::Scalar), &mut hidden).unwrap();
    assert_eq!(hidden, sample[0].input(0));
}

#[test]
fn a_failed_stack_leaves_all_caches_and_the_hidden_state() {
    let pool = ThreadPool::new(4).unwrap();
    let mut samples = samples(LAYERS);
    // The last layer overflows; those before have long finished when it does.
    samples[LAYERS - 1].weights.v.bias.as_mut().unwrap()[3] = f32::MAX;
    for team in 1..=4 {
        let runner = Runner::new(Isa::detect(), &pool).with_team(team);
        let mut model = Model::new(&samples);
        let mut hidden = samples[0].input(0);
        let error = model.decode(&runner, &mut hidden).unwrap_err();
        assert!(!matches!(error, LayerError::Interrupted(_)), "{error}");
        assert_bits_eq("hidden", &hidden, &samples[0].input(0));
        assert!(model.caches.iter().all(KvCache::is_empty), "team of {team}");
    }
}

#[test]
fn what_does_not_fit_the_stack_is_an_error() {
    let samples = samples(LAYERS);
    let runner = Runner::serial(Isa::Scalar);
    let mut hidden = samples[0].input(0);

    let mut model = Model::new(&samples);
    model.caches.pop();
    let error = model.decode(&runner, &mut hidden).unwrap_err();
    assert_eq!(error, LayerError::Length { what: "caches", expected: 3, found: 2 });

    let mut model = Model::new(&samples);
    model.scratch = StackScratch::new(samples[0].shape(), 2, POSITIONS, 1).unwrap();
    let error = model.decode(&runner, &mut hidden).unwrap_err();
    assert_eq!(error, LayerError::Length { what: "layers of the scratch", expected: 3, found: 2 });

    let mut model = Model::new(&samples);
    model.caches[1] = KvCache::with_capacity(samples[0].shape().cache().unwrap(), 0).unwrap();
    let error = model.decode(&runner, &mut hidden).unwrap_err();
    assert_eq!(error, LayerError::CacheFull { len: 0, capacity: 0 });

    hidden.pop();
    let error = Model::new(&samples).decode(&runner, &mut hidden).unwrap_err();
    assert!(matches!(error, LayerError::Length { what: "hidden", .. }), "{error}");
}

#[test]
fn an_error_between_the_blocks_ends_the_call() {
    let pool = ThreadPool::new(3).unwrap();
    let samples = samples(2);
    let mut model = Model::new(&samples);
    let mut hidden = samples[0].input(0);
    let runner = Runner::new(Isa::detect(), &pool);
    let result = model.decode_with(&runner, &mut hidden, |team, layer, _| {
        let refuse = layer == 1 && team.index() == 1;
        if refuse { Err(LayerError::Zero { what: "a test" }) } else { Ok(()) }
    });
    assert_eq!(result, Err(LayerError::Zero { what: "a test" }));
    assert!(model.caches.iter().all(KvCache::is_empty));
    assert_bits_eq("hidden", &hidden, &samples[0].input(0));
}

// Nobody's checks come after the last block but those of the stack.
#[test]
fn a_number_that_is_left_not_finite_after_the_last_block_is_an_error() {
    let pool = ThreadPool::new(3).unwrap();
    let samples = samples(2);
    for bad in [f32::NAN, f32::INFINITY] {
        let mut model = Model::new(&samples);
        let mut hidden = samples[0].input(0);
        let runner = Runner::new(Isa::detect(), &pool);
        let result = model.decode_with(&runner, &mut hidden, |team, layer, state| {
            if layer == 1
                && let Some(channel) = state.part(team).last_mut()
            {
                *channel = bad;
            }
            Ok(())
        });
        let what = "hidden after the last layer";
        assert!(
            matches!(result, Err(LayerError::NotFinite { what: found, .. }) if found == what),
            "{result:?}"
        );
        assert!(model.caches.iter().all(KvCache::is_empty));
        assert_bits_eq("hidden", &hidden, &samples[0].input(0));
    }
}
