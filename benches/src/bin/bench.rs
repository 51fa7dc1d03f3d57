//! What `cargo xtask bench` runs.
//!
//!     cargo run --release -p ck-bench --bin bench -- --help

use anyhow::{Context, Result, bail, ensure};
use ck_bench::context::Kv;
use ck_bench::memory::{restart_with_large_heap, streamed_bytes};
use ck_bench::model::{MODELS, Model};
use ck_bench::record::Record;
use ck_bench::report;
use ck_bench::session::Session;
use ck_bench::suite::{Extent, Options, Plan};
use ck_fused::Strategy;
use ck_isa::{Isa, Level};
use clap::{Parser, ValueEnum};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Compares strategies, levels and teams, and peers that are built in, in one interleaved run.
///
/// Every contender's answer is checked before and after it is timed; a wrong one ends the run. All contenders of a
/// case take turns, and the machine's state is measured around each case. Tables, a paragraph and charts go to
/// the screen and to target/bench/. docs/benchmarking.md says how to read them.
#[derive(Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench", max_term_width = 100)]
struct Args {
    /// Peers that take part, as a comma list.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    peer: Vec<Peer>,
    /// Models whose shapes are measured, as a comma list: parts of their names.
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = model)]
    shape: Vec<Model>,
    /// Lengths of the context, as a comma list.
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = positive)]
    ctx: Vec<usize>,
    /// Team sizes, as a comma list. Default: 1 and all CPUs.
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = positive)]
    threads: Vec<usize>,
    /// Levels, as a comma list, the one that is stood for first. Default: the best one, and the others beside it
    /// where one thread works on hot weights.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    isa: Vec<Level>,
    /// Types of caches, as a comma list, the one that is stood for first. Default: f32; with --full f16 and f32.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    kv: Vec<Kv>,
    /// Strategies, as a comma list, the one that is stood for first. Default: all.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    strategy: Vec<Strategy>,
    /// Only cases whose name contains all of these words, such as "layer Qwen2 hot 1T".
    #[arg(long, value_name = "WORDS", default_value = "")]
    filter: String,
    /// A look, in less than a minute: one context, hot.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Everything: all contexts, f16 and f32 caches, both kinds of pages.
    #[arg(long)]
    full: bool,
    /// Samples of each contender, at least 9.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u16).range(9..))]
    repeats: u16,
    /// List the cases and measure nothing.
    #[arg(long)]
    list: bool,
    /// Write what was measured to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Keep what was measured as `benches/records/<machine>/<date>.json`.
    #[arg(long)]
    record: bool,
    /// Report and draw a kept record instead of measuring; --kv names the cache that is stood for.
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["record", "json", "compare"])]
    from: Option<PathBuf>,
    /// Draw the charts into this folder too.
    #[arg(long, value_name = "FOLDER")]
    charts: Option<PathBuf>,
    /// Compare two records instead of measuring.
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"])]
    compare: Vec<PathBuf>,
}

/// A project to compare with.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Peer {
    /// ggml, of llama.cpp, built with AVX-512 where the machine has it.
    Ggml,
    /// The same without AVX-512.
    GgmlAvx2,
    /// candle's quantized products.
    Candle,
}

fn model(name: &str) -> Result<Model, String> {
    let named = |model: &&Model| model.name.to_lowercase().contains(&name.to_lowercase());
    let names = MODELS.map(|model| model.name).join(", ");
    let found = MODELS.iter().find(named).copied();
    found.ok_or_else(|| format!("no model has this in its name; there are {names}"))
}

fn positive(number: &str) -> Result<usize, String> {
    match number.parse() {
        Ok(0) | Err(_) => Err("expected a whole number above 0".to_owned()),
        Ok(number) => Ok(number),
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<ExitCode> {
    if let Some(file) = &args.from {
        let mut record = Record::load(file)?;
        if let Some(kv) = args.kv.first() {
            record.cases.iter_mut().for_each(|case| case.stand_for(*kv));
        }
        ensure!(!record.cases.is_empty(), "{} holds no samples of cases", file.display());
        publish(args, &record)?;
        return Ok(ExitCode::SUCCESS);
    }
    restart_with_large_heap();
    if let [old, new] = &args.compare[..] {
        print!("{}", report::compare(&Record::load(old)?, &Record::load(new)?));
        return Ok(ExitCode::SUCCESS);
    }
    let options = options(args)?;
    let plan = Plan::new(&options);
    if args.list {
        plan.names().iter().for_each(|name| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    if plan.cases() == 0 {
        bail!("no case has all of the words {:?} in its name; --list shows the names", args.filter);
    }
    let mut session = Session::new(plan.cases(), usize::from(args.repeats), streamed_bytes())?;
    let mut record = Record::new();
    record.machine.state = Some(session.state);
    record.machine.peaks = Some(session.peaks);
    record.machine.streamed_bytes = Some(session.streamed());
    println!("{}", record.machine);
    let result = plan.run(&options, &mut session);
    session.finish();
    let end = session.interrupted();
    finish(args, &session, &mut record)?;
    result?;
    if end {
        eprintln!("ended by Ctrl-C: {} of {} cases", session.measured.len(), plan.cases());
        return Ok(ExitCode::from(130));
    }
    Ok(ExitCode::SUCCESS)
}

fn options(args: &Args) -> Result<Options> {
    let (ggml, candle) =
        (args.peer.iter().any(|peer| *peer != Peer::Candle), args.peer.contains(&Peer::Candle));
    if ggml && !cfg!(feature = "peer-ggml") || candle && !cfg!(feature = "peer-candle") {
        bail!("this build has no such peer: `cargo xtask bench --peer ...` builds it in");
    }
    let levels = match &args.isa[..] {
        [] => vec![Isa::detect()],
        levels => levels.iter().map(|level| Isa::with_level(*level)).collect::<Result<_, _>>()?,
    };
    let cpus = ck_threadpool::available_cpus();
    let threads = match &args.threads[..] {
        [] if cpus == 1 => vec![1],
        [] => vec![1, cpus],
        threads => threads.to_vec(),
    };
    let extent = match (args.quick, args.full) {
        (true, _) => Extent::Quick,
        (_, true) => Extent::Full,
        _ => Extent::Normal,
    };
    Ok(Options {
        extent,
        filter: args.filter.clone(),
        models: args.shape.clone(),
        contexts: args.ctx.clone(),
        threads,
        levels,
        kv: args.kv.clone(),
        strategies: args.strategy.clone(),
        ggml,
        candle,
    })
}

/// Writes everything down, of however many cases there are.
fn finish(args: &Args, session: &Session, record: &mut Record) -> Result<()> {
    if session.measured.is_empty() {
        return Ok(());
    }
    session.measured.iter().for_each(|one| one.keep(record));
    publish(args, record)?;
    if let Some(file) = &args.json {
        record.save(file)?;
    }
    if args.record {
        println!("kept {}", record.keep("")?.display());
    }
    Ok(())
}

/// Writes the report, the charts and the record to `target/bench/`, and says the most important of it.
fn publish(args: &Args, record: &Record) -> Result<()> {
    let peaks = record.machine.peaks.context("the record has no peaks of its machine")?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench");
    std::fs::create_dir_all(&folder)?;
    let findings = report::findings(record);
    let tables = report::tables(&record.cases, &peaks);
    let report = format!("{}\n\n{tables}\n{findings}\n", record.machine);
    std::fs::write(folder.join("report.txt"), &report)?;
    record.save(&folder.join("record.json"))?;
    report::draw(&folder, record)?;
    if let Some(folder) = &args.charts {
        std::fs::create_dir_all(folder)?;
        for file in report::draw(folder, record)? {
            println!("drew {}", file.display());
        }
    }
    println!("\n{}", report::summaries(&record.cases, &peaks));
    println!("The whole report and the charts are in target/bench/.\n\n{findings}");
    Ok(())
}
