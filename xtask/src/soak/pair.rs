//! Two contexts of one layer, which must stay equal: one of serial scalar code, one of everything else.

use super::MOST_THREADS;
use super::sample::{POSITIONS, Sample};
use anyhow::{Result, bail, ensure};
use ck_fused::{DecodeContext, DecodeLayer, LayerError, Runner, Scratch, Strategy};
use ck_isa::Isa;
use ck_ops::{CacheElement, KvCache, RopeTable};
use ck_testing::generate::{Rng, Values};
use ck_threadpool::ThreadPool;
use std::fmt;

/// What has been done so far.
#[derive(Default)]
pub(super) struct Tally {
    tokens: u64,
    refused: u64,
    truncations: u64,
    longest: usize,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tokens, refused, truncations, longest } = self;
        write!(f, "{tokens} tokens, {refused} calls refused, {truncations} truncations")?;
        write!(f, ", contexts up to {longest}")
    }
}

/// A layer with two contexts that went through the same calls, of any element type.
pub(super) trait AnyPair {
    /// Does one thing at random.
    fn act(&mut self, pool: &ThreadPool, rng: &mut Rng, tally: &mut Tally) -> Result<()>;
}

/// The memory of one of the two.
struct Memory<E: CacheElement> {
    cache: KvCache<E>,
    scratch: Scratch<E>,
}

/// A layer with two contexts that went through the same calls.
struct Pair<'w, E: CacheElement> {
    layer: DecodeLayer<'w>,
    packed: DecodeLayer<'static>,
    rope: Option<&'w RopeTable>,
    serial: Memory<E>,
    other: Memory<E>,
}

/// A pair for this layer, of any capacity.
pub(super) fn make<'w, E: CacheElement>(
    sample: &'w Sample,
    rng: &mut Rng,
) -> Result<Box<dyn AnyPair + 'w>> {
    let layer = sample.layer()?;
    let capacity = 1 + rng.below(POSITIONS);
    let memory = |team| -> Result<Memory<E>> {
        Ok(Memory {
            cache: KvCache::with_capacity(layer.shape().cache()?, capacity)?,
            scratch: Scratch::for_team(layer.shape(), capacity, team)?,
        })
    };
    let (serial, other) = (memory(1)?, memory(MOST_THREADS)?);
    let (packed, rope) = (layer.pack()?, sample.rope.as_ref());
    Ok(Box::new(Pair { layer, packed, rope, serial, other }))
}

impl<E: CacheElement> AnyPair for Pair<'_, E> {
    fn act(&mut self, pool: &ThreadPool, rng: &mut Rng, tally: &mut Tally) -> Result<()> {
        let len = self.serial.cache.len();
        match rng.below(20) {
            0 => self.truncate(rng.below(len + 1), tally),
            1 => self.truncate(len.saturating_sub(1 + rng.below(3)), tally),
            2 => self.spoiled(pool, rng, tally)?,
            _ => {
                for _ in 0..1 + rng.below(12) {
                    self.decode(pool, rng, tally)?;
                }
            }
        }
        ensure!(self.serial.cache.len() == self.other.cache.len(), "the contexts differ in length");
        Ok(())
    }
}

impl<E: CacheElement> Pair<'_, E> {
    fn truncate(&mut self, len: usize, tally: &mut Tally) {
        self.serial.cache.truncate(len);
        self.other.cache.truncate(len);
        tally.truncations += 1;
    }

    /// A token in both contexts. A full one refuses it, and then is cut.
    fn decode(&mut self, pool: &ThreadPool, rng: &mut Rng, tally: &mut Tally) -> Result<()> {
        let kind = rng.choose(&[Values::Normal, Values::HugeActivations]);
        let input = kind.row(rng, self.layer.shape().embed_dim());
        let full = self.serial.cache.len() == self.serial.cache.capacity();
        match self.both(pool, rng, &input)? {
            Ok(()) => {
                ensure!(!full, "a full context took a token");
                tally.tokens += 1;
                tally.longest = tally.longest.max(self.serial.cache.len());
            }
            Err(LayerError::CacheFull { .. }) if full => {
                tally.refused += 1;
                self.truncate(rng.below(self.serial.cache.len() + 1), tally);
            }
            Err(error) => bail!("a good token was refused: {error}"),
        }
        Ok(())
    }

    /// A token that both contexts refuse.
    fn spoiled(&mut self, pool: &ThreadPool, rng: &mut Rng, tally: &mut Tally) -> Result<()> {
        let mut input = Values::Normal.row(rng, self.layer.shape().embed_dim());
        let index = rng.below(input.len());
        input[index] = rng.choose(&Values::NON_FINITE);
        ensure!(self.both(pool, rng, &input)?.is_err(), "a spoiled token was taken");
        tally.refused += 1;
        Ok(())
    }

    /// Calls both, compares everything that they gave, and hands on the serial result.
    fn both(
        &mut self,
        pool: &ThreadPool,
        rng: &mut Rng,
        input: &[f32],
    ) -> Result<Result<(), LayerError>> {
        let levels: Vec<Isa> = Isa::available().collect();
        let runner = Runner::new(rng.choose(&levels), pool)
            .with_strategy(rng.choose(Strategy::ALL))
            .with_team(1 + rng.below(MOST_THREADS));
        let packed = rng.below(2) == 0;
        let layer: &DecodeLayer<'_> = if packed { &self.packed } else { &self.layer };
        let residual = (rng.below(4) > 0).then_some(input);
        let decode = |layer: &DecodeLayer<'_>, runner: &Runner<'_>, memory: &mut Memory<E>| {
            let Memory { cache, scratch } = memory;
            let context = DecodeContext { rope: self.rope, cache, scratch };
            let mut output = vec![7.0; layer.shape().embed_dim()];
            (layer.decode(runner, context, input, residual, &mut output), output)
        };
        let (expected, a) = decode(&self.layer, &Runner::serial(Isa::Scalar), &mut self.serial);
        let (found, b) = decode(layer, &runner, &mut self.other);
        let what = || format!("{runner:?}, packed {packed}, {:?}", self.serial.cache);
        ensure!(found.is_ok() == expected.is_ok(), "{found:?}, not {expected:?}: {}", what());
        ensure!(bits(&a).eq(bits(&b)), "other bits of the output: {}", what());
        if expected.is_err() {
            ensure!(a.iter().all(|x| *x == 7.0), "a failed call wrote its output: {}", what());
        } else {
            let (a, b) = (self.serial.newest()?, self.other.newest()?);
            ensure!(bits(&a).eq(bits(&b)), "other bits in the cache: {}", what());
        }
        Ok(expected)
    }
}

impl<E: CacheElement> Memory<E> {
    /// Keys and values of the newest position.
    fn newest(&self) -> Result<Vec<f32>> {
        let shape = self.cache.shape();
        let (position, head_dim) = (self.cache.len() - 1, shape.head_dim());
        let mut rows = vec![f32::NAN; 2 * shape.n_kv_heads() * head_dim];
        for (head, row) in rows.chunks_exact_mut(2 * head_dim).enumerate() {
            let (key, value) = row.split_at_mut(head_dim);
            self.cache.key(head, position, key)?;
            self.cache.value(head, position, value)?;
        }
        Ok(rows)
    }
}

fn bits(values: &[f32]) -> impl Iterator<Item = u32> + '_ {
    values.iter().map(|value| value.to_bits())
}
