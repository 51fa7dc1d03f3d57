//! The attention part alone.

use super::Options;
use crate::attention::{Ours, case};
use crate::case::Heat;
use crate::contender::{Entry, Expected};
use crate::context::{Kv, Stored};
use crate::layer::cache_bytes;
use crate::memory::{PageKind, ReadLoop};
use crate::model::Model;
use crate::session::Session;
use anyhow::Result;
use ck_isa::Isa;
use ck_ops::{CacheElement, Q8_0};
use half::f16;
use std::rc::Rc;

pub(super) fn run(
    options: &Options,
    session: &mut Session,
    what: (Model, Kv, Heat),
    contexts: &[usize],
) -> Result<()> {
    for context in contexts {
        if session.interrupted() {
            break;
        }
        session.say("preparing caches");
        match what.1 {
            Kv::F32 => run_one::<f32>(options, session, what, *context)?,
            Kv::F16 => run_one::<f16>(options, session, what, *context)?,
            Kv::Q8_0 => run_one::<Q8_0>(options, session, what, *context)?,
        }
    }
    Ok(())
}

fn run_one<E: CacheElement>(
    options: &Options,
    session: &mut Session,
    (model, kv, heat): (Model, Kv, Heat),
    positions: usize,
) -> Result<()> {
    let stored = Stored::new(model.shape(), positions);
    let bytes = cache_bytes(model, positions, kv);
    let copies = match heat {
        Heat::Hot => 1,
        Heat::Streaming => (session.streamed() / 2).div_ceil(bytes as usize),
    };
    let answer = Ours::<E>::new(model, &stored, 1, Isa::Scalar, PageKind::Large)?.into_answer();
    let expected = Rc::new(Expected::from(answer));
    let read = session.to_read(heat, bytes as usize);
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for isa in &options.levels {
        for pages in options.pages() {
            let ours = Ours::<E>::new(model, &stored, copies, *isa, *pages)?;
            entries.push(Entry::new(ours, &expected));
        }
    }
    let loops = read.iter().map(|copies| ReadLoop::new(copies, options.level()));
    entries.extend(loops.map(|read| Entry::new(read, &expected)));
    #[cfg(feature = "peer-ggml")]
    if options.ggml {
        use crate::peers::ggml::{Attention, Caches, Mode};
        for mode in Mode::ALL.into_iter().filter(|mode| mode.elements.kv() == kv) {
            let of = (mode, model.shape());
            for pages in options.pages() {
                let caches = Caches::new(of, positions, &stored, copies, *pages);
                entries.push(Entry::new(Attention::new(model, mode, caches), &expected));
            }
        }
    }
    session.measure(case(model, positions, kv, heat), entries, copies)
}
