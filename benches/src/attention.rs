//! The attention part alone, one thread: cases and our contender.

use crate::case::{Case, Heat, Kind};
use crate::contender::{Agreement, Contender};
use crate::context::{Kv, Stored};
use crate::layer::cache_bytes;
use crate::memory::PageKind;
use crate::model::Model;
use crate::record::Work;
use anyhow::Result;
use ck_isa::Isa;
use ck_ops::{AttendScratch, Attention, CacheElement, KvCache, flash_decode};
use ck_testing::generate::{Rng, Values};

/// The case of one position's query heads on `positions` stored positions, its own among them.
#[must_use]
pub fn case(model: Model, positions: usize, kv: Kv, heat: Heat) -> Case {
    let f32_macs = (2 * model.shape().q_dim() * positions) as f64;
    let work = Work { bytes: cache_bytes(model, positions, kv), int_macs: 0.0, f32_macs };
    let subject = format!("{} {}", model.name, kv.name());
    Case { kind: Kind::Attention, subject, context: Some(positions), heat, threads: 1, work }
}

/// The queries, the same ones every time.
#[must_use]
pub fn queries(model: Model) -> Vec<f32> {
    Values::Normal.row(&mut Rng::new(17), model.shape().q_dim())
}

/// This project's attention at one level.
pub struct Ours<E: CacheElement> {
    name: String,
    isa: Isa,
    attention: Attention,
    caches: Vec<KvCache<E>>,
    q: Vec<f32>,
    scratch: AttendScratch,
    out: Vec<f32>,
}

impl<E: CacheElement> Ours<E> {
    /// Attention over `copies` caches with the same contents, in pages of one kind.
    ///
    /// # Errors
    ///
    /// Memory that is not to be had.
    pub fn new(
        model: Model,
        stored: &Stored,
        copies: usize,
        isa: Isa,
        pages: PageKind,
    ) -> Result<Self> {
        let shape = model.shape();
        let fill = || (0..copies).map(|_| stored.cache(shape, 0)).collect::<Result<_>>();
        let caches = crate::memory::with_pages(pages, fill)?;
        let pages = pages.of_heap(2 * stored.keys.len() * size_of::<E>());
        let attention = shape.attention()?;
        let scratch = AttendScratch::new(&attention)?;
        let out = vec![f32::NAN; shape.q_dim()];
        let name = format!("ck flash decode, {isa}, {}", pages.name());
        Ok(Self { name, isa, attention, caches, q: queries(model), scratch, out })
    }

    /// The answer of the last run, for the others to be compared with.
    #[must_use]
    pub fn into_answer(mut self) -> Vec<f32> {
        self.run(0);
        self.out
    }
}

impl<E: CacheElement> Contender for Ours<E> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn run(&mut self, copy: usize) {
        let cache = &self.caches[copy % self.caches.len()];
        let Self { isa, attention, q, scratch, out, .. } = self;
        flash_decode(*isa, attention, cache, None, q, scratch, out).expect("a valid call");
    }

    fn answer(&self) -> Vec<f32> {
        self.out.clone()
    }

    fn agreement(&self) -> Agreement {
        Agreement::Bits
    }
}
