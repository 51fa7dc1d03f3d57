//! The whole attention block: cases and our contenders.

use crate::case::{Case, Heat, Kind};
use crate::contender::{Agreement, Contender, Expected};
use crate::context::{Kv, Stored};
use crate::memory::PageKind;
use crate::model::{LayerData, Model};
use crate::record::Work;
use anyhow::Result;
use ck_fused::{DecodeContext, DecodeLayer, Runner, Scratch, Strategy};
use ck_isa::Isa;
use ck_ops::{CacheElement, KvCache, RopeTable};
use ck_threadpool::ThreadPool;
use std::cell::RefCell;

/// The case of one token that attends to `positions` positions, its own among them.
#[must_use]
pub fn case(model: Model, positions: usize, heat: Heat, threads: usize) -> Case {
    let shape = model.shape();
    let (e, q, kv) = (shape.embed_dim(), shape.q_dim(), shape.kv_dim());
    // 22 bytes for 32 weights of Q, K and O, and 34 for those of V.
    let weights = ((2 * q + kv) * e) as f64 * 22.0 / 32.0 + (kv * e) as f64 * 34.0 / 32.0;
    let work = Work {
        bytes: weights + cache_bytes(model, positions, Kv::F32),
        int_macs: ((2 * q + 2 * kv) * e) as f64,
        f32_macs: (2 * q * positions) as f64,
    };
    let subject = model.name.to_owned();
    Case { kind: Kind::Layer, subject, context: Some(positions), heat, threads, work }
}

/// Bytes of the keys and values of some positions.
#[must_use]
pub fn cache_bytes(model: Model, positions: usize, kv: Kv) -> f64 {
    kv.bytes(2 * model.shape().kv_dim() * positions) as f64
}

/// Packed copies of a layer, in pages of one kind.
pub struct Packed {
    /// The layers.
    pub layers: Vec<DecodeLayer<'static>>,
    /// The pages of the largest matrices.
    pub pages: PageKind,
}

impl Packed {
    /// `count` copies.
    ///
    /// # Errors
    ///
    /// Memory that is not to be had.
    pub fn new(data: &LayerData, count: usize, pages: PageKind) -> Result<Self> {
        let layer = data.layer(&data.bytes)?;
        let pack = || (0..count).map(|_| Ok(layer.pack()?)).collect::<Result<_>>();
        let layers = crate::memory::with_pages(pages, pack)?;
        let largest = data.parts.iter().map(|part| part.len).max().unwrap_or(0);
        Ok(Self { layers, pages: pages.of_heap(largest) })
    }
}

/// Caches with the same contents, and the angles of their positions.
pub struct Caches<E: CacheElement> {
    caches: Vec<KvCache<E>>,
    rope: RopeTable,
    name: &'static str,
}

impl<E: CacheElement> Caches<E> {
    /// `count` caches of elements that are called `kv`, in pages of one kind.
    ///
    /// # Errors
    ///
    /// Memory that is not to be had.
    pub fn new(
        model: Model,
        stored: &Stored,
        count: usize,
        kv: Kv,
        pages: PageKind,
    ) -> Result<Self> {
        let fill = || (0..count).map(|_| stored.cache(model.shape(), 1)).collect::<Result<_>>();
        let caches = crate::memory::with_pages(pages, fill)?;
        Ok(Self { caches, rope: model.rope(stored.positions + 1)?, name: kv.name() })
    }
}

/// This project's layer with one strategy.
pub struct Ours<'a, E: CacheElement> {
    name: String,
    packed: &'a Packed,
    caches: &'a RefCell<Caches<E>>,
    scratch: Scratch<E>,
    runner: Runner<'a>,
    pool: &'a ThreadPool,
    hidden: &'a [f32],
    output: Vec<f32>,
}

impl<'a, E: CacheElement> Ours<'a, E> {
    /// The layer on all threads of `pool`, or on one with the strategy `serial`.
    ///
    /// # Errors
    ///
    /// Memory that is not to be had.
    pub fn new(
        data: &'a LayerData,
        packed: &'a Packed,
        caches: &'a RefCell<Caches<E>>,
        (isa, strategy): (Isa, Strategy),
        pool: &'a ThreadPool,
    ) -> Result<Self> {
        let shape = data.model.shape();
        let (positions, kv) = (caches.borrow().caches[0].capacity(), caches.borrow().name);
        Ok(Self {
            name: format!("ck {strategy}, {kv}, {isa}, {}", packed.pages.name()),
            packed,
            scratch: Scratch::for_team(shape, positions, pool.threads())?,
            caches,
            runner: Runner::new(isa, pool).with_strategy(strategy),
            pool,
            hidden: &data.hidden,
            output: vec![f32::NAN; shape.embed_dim()],
        })
    }
}

impl<E: CacheElement> Contender for Ours<'_, E> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn start(&mut self) {
        self.pool.resume();
    }

    fn stop(&mut self) {
        self.pool.pause();
    }

    fn run(&mut self, copy: usize) {
        let layer = &self.packed.layers[copy % self.packed.layers.len()];
        let Caches { caches, rope, .. } = &mut *self.caches.borrow_mut();
        let index = copy % caches.len();
        let cache = &mut caches[index];
        let stored = cache.len();
        let context = DecodeContext { rope: Some(rope), cache, scratch: &mut self.scratch };
        layer
            .decode(&self.runner, context, self.hidden, Some(self.hidden), &mut self.output)
            .expect("a valid call");
        caches[index].truncate(stored);
    }

    fn answer(&self) -> Vec<f32> {
        self.output.clone()
    }

    fn agreement(&self) -> Agreement {
        Agreement::Bits
    }
}

/// The answer of the scalar code on unpacked weights, in one thread.
///
/// # Errors
///
/// Memory that is not to be had.
pub fn expected<E: CacheElement>(data: &LayerData, stored: &Stored) -> Result<Expected> {
    let shape = data.model.shape();
    let mut cache = stored.cache::<E>(shape, 1)?;
    let rope = data.model.rope(stored.positions + 1)?;
    let mut scratch = Scratch::new(shape, stored.positions + 1)?;
    let mut answer = vec![0.0; shape.embed_dim()];
    let context = DecodeContext { rope: Some(&rope), cache: &mut cache, scratch: &mut scratch };
    data.layer(&data.bytes)?.decode(
        &Runner::serial(Isa::Scalar),
        context,
        &data.hidden,
        Some(&data.hidden),
        &mut answer,
    )?;
    Ok(Expected { answer, passed_on: data.hidden.clone() })
}
