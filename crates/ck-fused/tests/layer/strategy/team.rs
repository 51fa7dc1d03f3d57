//! A layer and a team of any size to run it.

use crate::sample::Sample;
use ck_fused::{DecodeContext, DecodeLayer, LayerError, Runner, Scratch, Strategy};
use ck_ops::{CacheElement, KvCache, NewPosition, RopeTable};
use ck_quant::Isa;
use ck_testing::generate::{Rng, Values};
use ck_testing::run::all_or_few;
use ck_threadpool::ThreadPool;

/// The strategies that use a team.
pub(crate) const PARALLEL: &[Strategy] = &[
    Strategy::Barrier,
    Strategy::MultiDispatch,
    Strategy::Redundant,
    Strategy::Unfused,
    #[cfg(feature = "rayon")]
    Strategy::UnfusedRayon,
    Strategy::Auto,
];

/// The largest team of these tests: more than this machine has CPUs.
pub(crate) const LARGEST: usize = 8;

/// What one run of a layer works in.
pub(crate) struct Run<E: CacheElement> {
    rope: Option<RopeTable>,
    pub(crate) cache: KvCache<E>,
    scratch: Scratch<E>,
}

impl<E: CacheElement> Run<E> {
    /// Memory for `capacity` positions, `stored` of which are there already: the same for every run.
    pub(crate) fn new(sample: &Sample, stored: usize, capacity: usize) -> Self {
        let shape = sample.shape();
        let mut cache = KvCache::with_capacity(shape.cache().unwrap(), capacity).unwrap();
        let mut new = NewPosition::new(cache.shape()).unwrap();
        let mut rng = Rng::new(7);
        for _ in 0..stored {
            let k = Values::Normal.row(&mut rng, shape.kv_dim());
            let v = Values::Normal.row(&mut rng, shape.kv_dim());
            new.set(Isa::Scalar, &k, &v).unwrap();
            cache.append(&new).unwrap();
        }
        let scratch = Scratch::for_team(shape, capacity, LARGEST).unwrap();
        Self { rope: sample.table(capacity), cache, scratch }
    }

    pub(crate) fn decode(
        &mut self,
        layer: &DecodeLayer<'_>,
        runner: &Runner<'_>,
        input: &[f32],
    ) -> Result<Vec<f32>, LayerError> {
        let context = DecodeContext {
            rope: self.rope.as_ref(),
            cache: &mut self.cache,
            scratch: &mut self.scratch,
        };
        let mut output = vec![f32::NAN; input.len()];
        layer.decode(runner, context, input, Some(input), &mut output)?;
        Ok(output)
    }

    /// The bits of the outputs of `tokens` tokens, and of everything that is stored then.
    pub(crate) fn sequence(
        &mut self,
        sample: &Sample,
        layer: &DecodeLayer<'_>,
        runner: &Runner<'_>,
        tokens: usize,
    ) -> Vec<u32> {
        let mut bits = Vec::new();
        for token in 0..tokens {
            let output = self.decode(layer, runner, &sample.input(token)).unwrap();
            bits.extend(output.into_iter().map(f32::to_bits));
        }
        bits.extend(stored(&self.cache));
        bits
    }
}

/// The bits of everything stored.
pub(crate) fn stored<E: CacheElement>(cache: &KvCache<E>) -> Vec<u32> {
    let shape = cache.shape();
    let mut head = vec![0.0; shape.head_dim()];
    let mut bits = Vec::new();
    for position in 0..cache.len() {
        for kv_head in 0..shape.n_kv_heads() {
            cache.key(kv_head, position, &mut head).unwrap();
            bits.extend(head.iter().map(|x| x.to_bits()));
            cache.value(kv_head, position, &mut head).unwrap();
            bits.extend(head.iter().map(|x| x.to_bits()));
        }
    }
    bits
}

/// Runners of all parallel strategies on teams of 1 to [`LARGEST`] members, with every level. In a slow run the teams
/// have 2, 5 and 8 members.
pub(crate) fn runners(pool: &ThreadPool) -> impl Iterator<Item = Runner<'_>> {
    let (first, every) = all_or_few((1, 1), (2, 3));
    let teams = Isa::available()
        .flat_map(move |isa| (first..=LARGEST).step_by(every).map(move |team| (isa, team)));
    teams.flat_map(move |(isa, team)| {
        let runner = Runner::new(isa, pool).with_team(team);
        PARALLEL.iter().map(move |strategy| runner.with_strategy(*strategy))
    })
}

/// What tells one runner from another.
pub(crate) fn name(runner: &Runner<'_>) -> String {
    format!("{} {} on {}", runner.strategy(), runner.isa(), runner.team())
}
