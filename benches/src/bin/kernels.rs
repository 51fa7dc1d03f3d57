//! Times the kernels and their peers in one interleaved run.
//!
//!     cargo run --release -p ck-bench --features peer-ggml --bin kernels -- --help

use anyhow::Result;
use ck_bench::contender::{Contender, check};
use ck_bench::gemv::{self, Case};
use ck_bench::memory::{Copies, PageKind, ReadLoop};
use ck_bench::record::{Outcome, Ratio, Record, Work};
use ck_bench::stats::Summary;
use ck_bench::{quantize, timing};
use ck_quant::{Format, Isa, Level, PackedMatrix};
use clap::Parser;

/// Times the kernels and their peers in one interleaved run, after checking their answers.
#[derive(Parser)]
#[command(max_term_width = 100)]
struct Args {
    /// Only cases whose name contains this.
    #[arg(long, default_value = "")]
    filter: String,
    /// Samples of each contender.
    #[arg(long, default_value_t = 15)]
    repeats: usize,
    /// Levels to time; the best one of this machine if none is named.
    #[arg(long, value_delimiter = ',')]
    isa: Vec<Level>,
    /// Leave out contenders whose name contains this (repeatable).
    #[arg(long)]
    without: Vec<String>,
    /// Write a record beside the benchmarks.
    #[arg(long)]
    record: bool,
}

/// Shapes of the matrices: small enough for L2, for L3, and larger.
const SHAPES: [(usize, usize); 3] = [(896, 896), (2048, 2048), (4096, 4096)];

fn main() -> Result<()> {
    let args = Args::parse();
    let levels = match args.isa.as_slice() {
        [] => vec![Isa::detect()],
        levels => levels.iter().map(|level| Isa::with_level(*level)).collect::<Result<_, _>>()?,
    };
    let mut record = Record::new();
    let machine = &record.machine;
    println!("{}, levels {}, revision {}", machine.cpu, machine.levels.join(" "), machine.revision);
    for len in [576, 896, 4096] {
        let name = format!("quantize {len}");
        if name.contains(&args.filter) {
            quantize_case(&args, &levels, &mut record, name, len)?;
        }
    }
    for format in [Format::Q5_0, Format::Q8_0] {
        for (rows, columns) in SHAPES {
            for streaming in [false, true] {
                let case = Case::new(format, rows, columns);
                if case.name(streaming).contains(&args.filter) {
                    gemv_case(&args, &levels, &mut record, &case, streaming)?;
                }
            }
        }
    }
    if args.record {
        println!("wrote {}", record.keep("kernels")?.display());
    }
    Ok(())
}

fn quantize_case(
    args: &Args,
    levels: &[Isa],
    record: &mut Record,
    name: String,
    len: usize,
) -> Result<()> {
    let mut reference = quantize::Ours::new(Isa::Scalar, len);
    reference.run(0);
    let mut contenders: Vec<Box<dyn Contender>> = Vec::new();
    for isa in levels {
        contenders.push(Box::new(quantize::Ours::new(*isa, len)));
    }
    #[cfg(feature = "peer-ggml")]
    contenders.push(Box::new(ck_bench::peers::ggml::Quantize::new(len)));
    let work = Work { bytes: (len * size_of::<f32>()) as f64, ..Work::default() };
    measure(args, record, Timed { name, work, copies: 1 }, contenders, &reference.answer())
}

fn gemv_case(
    args: &Args,
    levels: &[Isa],
    record: &mut Record,
    case: &Case,
    streaming: bool,
) -> Result<()> {
    let count = case.copies(streaming);
    let base = Copies::new(&case.bytes, count, PageKind::Base);
    let large = Copies::new(&case.bytes, count, PageKind::Large);
    let packed = (0..count).map(|index| PackedMatrix::pack(case.matrix(base.get(index))));
    let packed = packed.collect::<Result<Vec<_>, _>>()?;
    let mut contenders: Vec<Box<dyn Contender + '_>> = Vec::new();
    for isa in levels {
        contenders.push(Box::new(gemv::Ours::packed(case, *isa, &packed)));
        for copies in [&base, &large] {
            contenders.push(Box::new(gemv::Ours::rows(case, *isa, copies, count)));
        }
    }
    for copies in [&base, &large] {
        #[cfg(feature = "peer-ggml")]
        contenders.push(Box::new(ck_bench::peers::ggml::Gemv::new(case, copies)));
        contenders.push(Box::new(ReadLoop::new(copies, levels[0])));
    }
    #[cfg(feature = "peer-candle")]
    if !streaming {
        contenders.push(Box::new(ck_bench::peers::candle::Gemv::new(case)?));
    }
    let name = case.name(streaming);
    let timed = Timed { name, work: case.work(), copies: count };
    measure(args, record, timed, contenders, &case.expected())
}

/// A case as it is timed.
struct Timed {
    name: String,
    work: Work,
    copies: usize,
}

/// Checks, times, checks again, prints, and adds to the record. Ratios are to the first contender.
fn measure(
    args: &Args,
    record: &mut Record,
    Timed { name, work, copies }: Timed,
    mut contenders: Vec<Box<dyn Contender + '_>>,
    expected: &[f32],
) -> Result<()> {
    contenders.retain(|c| !args.without.iter().any(|part| c.name().contains(part)));
    for contender in &mut contenders {
        check(contender.as_mut(), 0, expected)?;
    }
    let samples = timing::interleaved(&mut contenders, copies, args.repeats);
    for contender in &mut contenders {
        check(contender.as_mut(), copies - 1, expected)?;
    }
    println!("\n{name} ({} bytes, {copies} copies)", work.bytes);
    let ours = contenders[0].name();
    for (contender, ns) in contenders.iter().zip(&samples) {
        let peer = contender.name();
        let Some(summary) = Summary::of(ns.clone()) else { continue };
        let outcome = Outcome::new(&name, &peer, &summary, work);
        let Some(ratio) = Ratio::new(&name, (&ours, &samples[0]), (&peer, ns)) else { continue };
        println!(
            "  {peer:34} {:12.1} ns  (min {:.1}, 10-90 % {:.1}..{:.1})  {:7.2} GB/s  {:6.2}",
            summary.median,
            summary.min,
            summary.p10,
            summary.p90,
            outcome.gbps.unwrap_or_default(),
            ratio.median,
        );
        record.results.push(outcome);
        record.ratios.extend((peer != ours).then_some(ratio));
    }
    Ok(())
}
