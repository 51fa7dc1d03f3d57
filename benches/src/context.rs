//! A made-up context: the keys and values of the positions before the one that is decoded.

use anyhow::Result;
use ck_fused::LayerShape;
use ck_isa::Isa;
use ck_ops::{CacheElement, KvCache, NewPosition};
use ck_testing::generate::Rng;
use half::f16;

/// Types of cache elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kv {
    /// `f32`.
    F32,
    /// `f16`.
    F16,
    /// Blocks of Q8_0.
    #[value(name = "q8_0")]
    Q8_0,
}

impl Kv {
    /// The name in tables and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Q8_0 => "q8_0",
        }
    }

    /// Bytes of so many elements, whole blocks.
    #[must_use]
    pub const fn bytes(self, elements: usize) -> usize {
        match self {
            Self::F32 => 4 * elements,
            Self::F16 => 2 * elements,
            Self::Q8_0 => elements / 32 * 34,
        }
    }
}

/// Keys and values, `[position][kv_dim]`, every number one that f16 holds exactly: so caches of f32 and f16 hold the
/// same numbers, and those of blocks of Q8_0 what it rounds them to.
pub struct Stored {
    /// Elements of all KV heads of one position.
    pub kv_dim: usize,
    /// How many positions.
    pub positions: usize,
    /// The keys.
    pub keys: Vec<f16>,
    /// The values.
    pub values: Vec<f16>,
}

impl Stored {
    /// `positions` positions of random numbers, the same ones every time.
    #[must_use]
    pub fn new(shape: LayerShape, positions: usize) -> Self {
        let (kv_dim, mut rng) = (shape.kv_dim(), Rng::new(13));
        // As even as the weights are: a variance of one.
        let mut numbers = || -> Vec<f16> {
            let limit = 3f32.sqrt();
            (0..kv_dim * positions).map(|_| f16::from_f32(rng.uniform(-limit, limit))).collect()
        };
        let (keys, values) = (numbers(), numbers());
        Self { kv_dim, positions, keys, values }
    }

    /// A cache that holds them and has room for `more` positions.
    ///
    /// # Errors
    ///
    /// Memory that is not to be had.
    pub fn cache<E: CacheElement>(&self, shape: LayerShape, more: usize) -> Result<KvCache<E>> {
        let mut cache = KvCache::with_capacity(shape.cache()?, self.positions + more)?;
        let mut new = NewPosition::new(shape.cache()?)?;
        let isa = Isa::detect();
        let rows = self.keys.chunks_exact(self.kv_dim).zip(self.values.chunks_exact(self.kv_dim));
        for (keys, values) in rows {
            let [keys, values] = [keys, values].map(widen);
            new.set(isa, &keys, &values)?;
            cache.append(&new)?;
        }
        Ok(cache)
    }
}

/// The same numbers as f32.
#[must_use]
pub fn widen(row: &[f16]) -> Vec<f32> {
    row.iter().copied().map(f16::to_f32).collect()
}
