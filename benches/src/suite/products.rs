//! Products of quantized matrices with vectors, and the quantization of these: one thread.

use super::Options;
use crate::case::{Case, Heat, Kind};
use crate::contender::{Contender, Entry, Expected};
use crate::gemv;
use crate::memory::{Copies, PageKind, ReadLoop};
use crate::quantize;
use crate::record::Work;
use crate::session::Session;
use anyhow::Result;
use ck_isa::Isa;
use ck_quant::{Format, PackedMatrix};
use std::rc::Rc;

/// The case of quantizing `len` activations.
pub(super) fn quantize_case(len: usize) -> Case {
    let work = Work { bytes: (len * size_of::<f32>()) as f64, ..Work::default() };
    let subject = len.to_string();
    Case { kind: Kind::Quantize, subject, context: None, heat: Heat::Hot, threads: 1, work }
}

pub(super) fn quantize(options: &Options, session: &mut Session, len: usize) -> Result<()> {
    let mut reference = quantize::Ours::new(Isa::Scalar, len);
    reference.run(0);
    let expected = Rc::new(Expected::from(reference.answer()));
    let ours = options.levels.iter().map(|isa| quantize::Ours::new(*isa, len));
    #[allow(unused_mut, reason = "peers are features")]
    let mut entries: Vec<Entry<'_>> = ours.map(|ours| Entry::new(ours, &expected)).collect();
    #[cfg(feature = "peer-ggml")]
    if options.ggml {
        entries.push(Entry::new(crate::peers::ggml::Quantize::new(len), &expected));
    }
    session.measure(quantize_case(len), entries, 1)
}

/// The case of a square matrix.
pub(super) fn gemv_case(format: Format, size: usize, heat: Heat) -> Case {
    let macs = (size * size) as f64;
    let bytes = macs / 32.0 * format.block_bytes() as f64;
    let work = Work { bytes, int_macs: macs, f32_macs: 0.0 };
    let subject = format!("{format} {size}x{size}");
    Case { kind: Kind::Gemv, subject, context: None, heat, threads: 1, work }
}

pub(super) fn gemv(
    options: &Options,
    session: &mut Session,
    format: Format,
    size: usize,
    heat: Heat,
) -> Result<()> {
    session.say("preparing matrices");
    let case = gemv::Case::new(format, size, size);
    let streaming = heat == Heat::Streaming;
    let count = case.copies(streaming);
    let kinds = options.pages();
    let rows: Vec<Copies> =
        kinds.iter().map(|kind| Copies::new(&case.bytes, count, *kind)).collect();
    let packed = kinds.iter().map(|kind| pack(&case, count, *kind)).collect::<Result<Vec<_>>>()?;
    let expected = Rc::new(Expected::from(case.expected()));
    let read = session.to_read(heat, case.bytes.len());
    let mut entries = Vec::new();
    for isa in &options.levels {
        for (packed, kind) in packed.iter().zip(kinds) {
            entries.push(Entry::new(gemv::Ours::packed(&case, *isa, packed, *kind), &expected));
        }
        for copies in &rows {
            entries.push(Entry::new(gemv::Ours::rows(&case, *isa, copies, count), &expected));
        }
    }
    let loops = read.iter().map(|copies| ReadLoop::new(copies, options.level()));
    entries.extend(loops.map(|read| Entry::new(read, &expected)));
    #[cfg(feature = "peer-ggml")]
    for copies in &rows {
        if options.ggml {
            entries.push(Entry::new(crate::peers::ggml::Gemv::new(&case, copies), &expected));
        }
    }
    #[cfg(feature = "peer-candle")]
    if options.candle && !streaming {
        entries.push(Entry::new(crate::peers::candle::Gemv::new(&case)?, &expected));
    }
    session.measure(gemv_case(format, size, heat), entries, count)
}

fn pack(case: &gemv::Case, count: usize, kind: PageKind) -> Result<Vec<PackedMatrix>> {
    let pack = || (0..count).map(|_| Ok(PackedMatrix::pack(case.matrix(&case.bytes))?)).collect();
    crate::memory::with_pages(kind, pack)
}
