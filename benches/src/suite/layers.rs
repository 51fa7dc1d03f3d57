//! The whole attention block.

use super::{Extent, Options};
use crate::case::Heat;
use crate::contender::{Entry, Expected};
use crate::context::{Kv, Stored};
use crate::layer::{Caches, Ours, Packed, case, expected};
use crate::memory::{Copies, ReadLoop};
use crate::model::{LayerData, Model};
use crate::session::Session;
use anyhow::Result;
use ck_fused::Strategy;
use ck_isa::Isa;
use ck_ops::{CacheElement, Q8_0};
use ck_threadpool::ThreadPool;
use half::f16;
use std::cell::RefCell;
use std::rc::Rc;

/// Bytes of all caches of one kind, at most: they are copies of one another and only there to be read from
/// memory, and several kinds are read in turn.
const CACHES: usize = 256 << 20;

/// The weights of a model's layer, in all forms that take part.
struct Sets {
    data: LayerData,
    /// Ours, one for every kind of pages.
    packed: Vec<Packed>,
    /// As a file has them, for peers.
    #[cfg_attr(not(feature = "peer-ggml"), allow(dead_code, reason = "only peers read it"))]
    files: Vec<Copies>,
    copies: usize,
}

impl Sets {
    fn new(options: &Options, model: Model, copies: usize) -> Result<Self> {
        let data = LayerData::new(model)?;
        let pages = options.pages().iter();
        let packed =
            pages.map(|pages| Packed::new(&data, copies, *pages)).collect::<Result<_>>()?;
        let mut files = Vec::new();
        if options.ggml {
            let pages = options.pages().iter();
            files = pages.map(|pages| Copies::new(&data.bytes, copies, *pages)).collect();
        }
        Ok(Self { data, packed, files, copies })
    }
}

pub(super) fn run(
    options: &Options,
    session: &mut Session,
    model: Model,
    heat: Heat,
    cases: &[(usize, usize)],
) -> Result<()> {
    session.say("preparing layers");
    let weights = case(model, 1, heat, 1).work.bytes;
    let copies = match heat {
        Heat::Hot => 1,
        Heat::Streaming => session.streamed().div_ceil(weights as usize),
    };
    let sets = Sets::new(options, model, copies)?;
    for &(positions, threads) in cases {
        if session.interrupted() {
            break;
        }
        let pool = ThreadPool::new(threads)?;
        run_one(options, session, &sets, (positions, heat), &pool)?;
    }
    Ok(())
}

fn run_one(
    options: &Options,
    session: &mut Session,
    sets: &Sets,
    (positions, heat): (usize, Heat),
    pool: &ThreadPool,
) -> Result<()> {
    session.say("preparing caches");
    let model = sets.data.model;
    let case = case(model, positions, heat, pool.threads());
    let stored = Stored::new(model.shape(), positions - 1);
    let kinds = options.kv_or_default();
    let [f32_caches, f16_caches, q8_0_caches] =
        [Kv::F32, Kv::F16, Kv::Q8_0].map(|kv| kinds.contains(&kv));
    let f32_caches = f32_caches.then(|| caches::<f32>(options, sets, &stored, Kv::F32));
    let f16_caches = f16_caches.then(|| caches::<f16>(options, sets, &stored, Kv::F16));
    let q8_0_caches = q8_0_caches.then(|| caches::<Q8_0>(options, sets, &stored, Kv::Q8_0));
    let (f32_caches, f16_caches) = (f32_caches.transpose()?, f16_caches.transpose()?);
    let q8_0_caches = q8_0_caches.transpose()?;
    let right = Rc::new(expected::<f32>(&sets.data, &stored)?);
    let read = session.to_read(heat, case.work.bytes as usize);
    let mut ours_by_kind = Vec::new();
    if let Some(caches) = &f32_caches {
        ours_by_kind.push((Kv::F32, ours(options, sets, caches, &right, (heat, pool))?));
    }
    if let Some(caches) = &f16_caches {
        let right = Rc::new(expected::<f16>(&sets.data, &stored)?);
        ours_by_kind.push((Kv::F16, ours(options, sets, caches, &right, (heat, pool))?));
    }
    if let Some(caches) = &q8_0_caches {
        let right = Rc::new(expected::<Q8_0>(&sets.data, &stored)?);
        ours_by_kind.push((Kv::Q8_0, ours(options, sets, caches, &right, (heat, pool))?));
    }
    ours_by_kind.sort_by_key(|(kv, _)| kinds.iter().position(|kind| kind == kv));
    let mut entries: Vec<Entry<'_>> =
        ours_by_kind.into_iter().flat_map(|(_, entries)| entries).collect();
    let loops = read.iter().map(|copies| ReadLoop::new(copies, options.level()).on(pool));
    entries.extend(loops.map(|read| Entry::new(read, &right)));
    #[cfg(feature = "peer-ggml")]
    if options.ggml {
        entries.extend(ggml(sets, &stored, pool.threads(), &right));
    }
    session.measure(case, entries, sets.copies)
}

/// Caches of one type, a set for every kind of pages.
type Sides<E> = Vec<RefCell<Caches<E>>>;

fn caches<E: CacheElement>(
    options: &Options,
    sets: &Sets,
    stored: &Stored,
    kv: Kv,
) -> Result<Sides<E>> {
    let model = sets.data.model;
    let count = cache_copies(model, stored, sets.copies, kv);
    let caches = options
        .pages()
        .iter()
        .map(|pages| Ok(RefCell::new(Caches::new(model, stored, count, kv, *pages)?)));
    caches.collect()
}

/// How many caches there are for so many copies of the weights.
fn cache_copies(model: Model, stored: &Stored, copies: usize, kv: Kv) -> usize {
    let bytes = crate::layer::cache_bytes(model, stored.positions + 1, kv) as usize;
    CACHES.div_ceil(bytes).min(copies)
}

/// This project's contenders with one type of cache, the one that it stands for first.
fn ours<'a, E: CacheElement>(
    options: &Options,
    sets: &'a Sets,
    caches: &'a Sides<E>,
    expected: &Rc<Expected>,
    (heat, pool): (Heat, &'a ThreadPool),
) -> Result<Vec<Entry<'a>>> {
    let mut entries = Vec::new();
    let mut add = |index: usize, isa, strategy| -> Result<()> {
        let (packed, caches) = (&sets.packed[index], &caches[index]);
        let ours = Ours::new(&sets.data, packed, caches, (isa, strategy), pool)?;
        entries.push(Entry::new(ours, expected));
        Ok(())
    };
    let strategies = strategies(options, pool.threads());
    for index in 0..sets.packed.len() {
        // In base pages only what this project stands for.
        for strategy in strategies.iter().take(if index == 0 { usize::MAX } else { 1 }) {
            add(index, options.level(), *strategy)?;
        }
    }
    if pool.threads() == 1 && heat == Heat::Hot {
        let others: Vec<Isa> = match options.levels.len() {
            // Nobody asked for levels: all are compared.
            1 if options.extent != Extent::Quick => {
                Isa::available().filter(|isa| isa.level() != options.level().level()).collect()
            }
            _ => options.levels.iter().skip(1).copied().collect(),
        };
        for isa in others {
            add(0, isa, strategies[0])?;
        }
    }
    Ok(entries)
}

/// The strategies for a team, the one that this project stands for first.
fn strategies(options: &Options, threads: usize) -> Vec<Strategy> {
    let all = match (options.strategies.is_empty(), threads) {
        (false, _) => &options.strategies[..],
        (true, 1) => &[Strategy::Serial, Strategy::Redundant, Strategy::Unfused],
        (true, _) => &[
            Strategy::Auto,
            Strategy::Barrier,
            Strategy::MultiDispatch,
            Strategy::Redundant,
            Strategy::Unfused,
        ],
    };
    all.to_vec()
}

#[cfg(feature = "peer-ggml")]
fn ggml<'a>(
    sets: &'a Sets,
    stored: &Stored,
    threads: usize,
    expected: &Rc<Expected>,
) -> Vec<Entry<'a>> {
    use crate::peers::ggml;
    let threads = Rc::new(ggml::Threads::new(threads));
    threads.pause();
    let (model, positions) = (sets.data.model, stored.positions + 1);
    let mut entries = Vec::new();
    for copies in &sets.files {
        for mode in ggml::Mode::ALL {
            let (of, count) = (
                (mode, model.shape()),
                cache_copies(model, stored, sets.copies, mode.elements.kv()),
            );
            let caches = ggml::Caches::new(of, positions, stored, count, copies.kind());
            let layer = ggml::Layer::new(&sets.data, copies, caches, (mode, positions), &threads);
            entries.push(Entry::new(layer, expected));
        }
    }
    entries
}
