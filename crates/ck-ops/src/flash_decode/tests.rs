//! Attention against the oracle, and the cases of its kind.

mod cases;
mod errors;
mod oracle;
mod parallel;

use super::{AttendScratch, Attention, flash_decode};
use crate::testing::on_every_level;
use crate::{CHUNK, CacheElement, KvCache, NewPosition, OpError};
use ck_isa::Isa;
use ck_testing::generate::{Rng, Values};

/// A history, and the query of its last position.
struct Sample {
    attention: Attention,
    /// `[positions][n_kv_heads * head_dim]`.
    keys: Vec<f32>,
    values: Vec<f32>,
    q: Vec<f32>,
}

impl Sample {
    fn new(attention: Attention, positions: usize, kind: Values, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let width = attention.n_kv_heads() * attention.head_dim();
        Self {
            keys: kind.row(&mut rng, positions * width),
            values: kind.row(&mut rng, positions * width),
            q: kind.row(&mut rng, attention.n_heads() * attention.head_dim()),
            attention,
        }
    }

    fn width(&self) -> usize {
        self.attention.n_kv_heads() * self.attention.head_dim()
    }

    fn rows(&self) -> impl Iterator<Item = (&[f32], &[f32])> {
        self.keys.chunks_exact(self.width()).zip(self.values.chunks_exact(self.width()))
    }

    fn positions(&self) -> usize {
        self.keys.len() / self.width()
    }

    /// A cache of every position but the last, and the last. Every level rounds them to the same bits, which the
    /// cache's own tests see to.
    fn stored<E: CacheElement>(&self) -> (KvCache<E>, NewPosition<E>) {
        let shape = self.attention.shape();
        let mut cache = KvCache::with_capacity(shape, self.positions() - 1).unwrap();
        let mut new = NewPosition::new(shape).unwrap();
        for (index, (key, value)) in self.rows().enumerate() {
            new.set(Isa::detect(), key, value).unwrap();
            if index + 1 < self.positions() {
                cache.append(&new).unwrap();
            }
        }
        (cache, new)
    }

    /// The result of every level, which is the same.
    fn decode<E: CacheElement>(
        &self,
        (cache, new): &(KvCache<E>, NewPosition<E>),
    ) -> Result<Vec<f32>, OpError> {
        on_every_level(|isa| {
            let mut scratch = AttendScratch::new(&self.attention).unwrap();
            let mut out = vec![f32::NAN; self.q.len()];
            flash_decode(isa, &self.attention, cache, Some(new), &self.q, &mut scratch, &mut out)?;
            Ok(out)
        })
    }
}

fn attention(n_heads: usize, n_kv_heads: usize, head_dim: usize) -> Attention {
    Attention::new(n_heads, n_kv_heads, head_dim).unwrap()
}

/// Windows around panels and chunks, with and without sinks.
fn windows() -> impl Iterator<Item = (Option<usize>, usize)> {
    let windows = [1, 15, 16, 17, 100, CHUNK - 1, CHUNK, CHUNK + 1, 600];
    let sinks = [0, 1, 4, 17, CHUNK + 3];
    let cut = windows.into_iter().flat_map(move |w| sinks.map(|sinks| (Some(w), sinks)));
    cut.chain([(None, 0), (None, 4)])
}

fn with_window(attention: Attention, (window, sinks): (Option<usize>, usize)) -> Attention {
    let attention = attention.with_sinks(sinks);
    match window {
        Some(window) => attention.with_window(window).unwrap(),
        None => attention,
    }
}
