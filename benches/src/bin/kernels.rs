//! Times the kernels and their peers in one interleaved run.
//!
//!     cargo run --release -p ck-bench --features peer-ggml --bin kernels -- --help

use anyhow::Result;
use ck_bench::contender::{Contender, check};
use ck_bench::gemv::{self, Case};
use ck_bench::memory::{Copies, PageKind, ReadLoop};
use ck_bench::record::{CaseRecord, Record};
use ck_bench::{quantize, timing};
use ck_quant::{Format, Isa, Level, PackedMatrix};
use clap::Parser;
use std::path::PathBuf;

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
    /// Write a record under this folder, such as benches/records.
    #[arg(long)]
    record: Option<PathBuf>,
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
    println!("{}, levels {}, revision {}", record.cpu, record.levels.join(" "), record.revision);
    for len in [576, 896, 4096] {
        let name = format!("quantize {len}");
        if name.contains(&args.filter) {
            record.cases.push(quantize_case(&args, &levels, name, len)?);
        }
    }
    for format in [Format::Q5_0, Format::Q8_0] {
        for (rows, columns) in SHAPES {
            for streaming in [false, true] {
                let case = Case::new(format, rows, columns);
                if case.name(streaming).contains(&args.filter) {
                    record.cases.push(gemv_case(&args, &levels, &case, streaming)?);
                }
            }
        }
    }
    if let Some(records) = &args.record {
        println!("wrote {}", record.write(records, "kernels")?.display());
    }
    Ok(())
}

fn quantize_case(args: &Args, levels: &[Isa], name: String, len: usize) -> Result<CaseRecord> {
    let mut reference = quantize::Ours::new(Isa::Scalar, len);
    reference.run(0);
    let mut contenders: Vec<Box<dyn Contender>> = Vec::new();
    for isa in levels {
        contenders.push(Box::new(quantize::Ours::new(*isa, len)));
    }
    #[cfg(feature = "peer-ggml")]
    contenders.push(Box::new(ck_bench::peers::ggml::Quantize::new(len)));
    measure(args, name, len * size_of::<f32>(), 1, contenders, &reference.answer())
}

fn gemv_case(args: &Args, levels: &[Isa], case: &Case, streaming: bool) -> Result<CaseRecord> {
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
    measure(args, name, case.bytes.len(), count, contenders, &case.expected())
}

/// Checks, times, checks again, and prints.
fn measure(
    args: &Args,
    name: String,
    bytes: usize,
    copies: usize,
    mut contenders: Vec<Box<dyn Contender + '_>>,
    expected: &[f32],
) -> Result<CaseRecord> {
    contenders.retain(|c| !args.without.iter().any(|part| c.name().contains(part)));
    for contender in &mut contenders {
        check(contender.as_mut(), 0, expected)?;
    }
    let timings = timing::interleaved(&mut contenders, copies, args.repeats);
    for contender in &mut contenders {
        check(contender.as_mut(), copies - 1, expected)?;
    }
    println!("\n{name} ({bytes} bytes, {copies} copies)");
    let first = timings[0].median_ns;
    for timing in &timings {
        let (median, [low, high]) = (timing.median_ns, timing.spread_ns);
        println!(
            "  {:34} {median:12.1} ns  (min {:.1}, 10-90 % {low:.1}..{high:.1})  {:7.2} GB/s  {:6.2}",
            timing.name,
            timing.min_ns,
            bytes as f64 / median,
            median / first,
        );
    }
    Ok(CaseRecord { name, bytes, repeats: args.repeats, timings })
}
