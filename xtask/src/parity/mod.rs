//! `cargo xtask parity`: every strategy and level against what llama.cpp recorded, and against each other
//! by bits.

mod bits;
mod case;
mod fed;
mod recording;
mod report;
mod rounding;

use anyhow::{Context as _, Result, bail};
use case::{Case, Setup};
use ck_fused::Strategy;
use ck_isa::{Isa, Level};
use ck_ops::Q8_0;
use ck_quant::BLOCK_LEN;
use half::f16;
use recording::Recording;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `cargo xtask parity`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Recordings to compare with, instead of those that the repository carries. Repeatable.
    #[arg(long, value_name = "FILE")]
    golden: Vec<PathBuf>,
    /// Strategies, as a comma list. Default: all.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    strategy: Vec<Strategy>,
    /// Levels, as a comma list. Default: all that this machine has.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    isa: Vec<Level>,
    /// Team sizes of the strategies that have a team, as a comma list.
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1,2,3")]
    threads: Vec<usize>,
    /// Cache types, as a comma list. Default: all.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    kv: Vec<Kv>,
    /// Write every case to this file as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A type of cache elements.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kv {
    F32,
    F16,
    #[value(name = "q8_0")]
    Q8_0,
}

impl Kv {
    const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Q8_0];

    const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Q8_0 => "q8_0",
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let files = if args.golden.is_empty() {
        ck_testing::golden::golden_files()
    } else {
        args.golden.clone()
    };
    let setups = setups(args)?;
    println!("{}", report::LEGEND);
    let mut cases = Vec::new();
    for file in files {
        let bytes =
            std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let recording = Recording::parse(&file, &bytes)
            .with_context(|| format!("cannot use {} as a recording", file.display()))?;
        println!("{recording}");
        let head_dim = recording.shape().head_dim();
        for &kv in &chosen(&args.kv, &Kv::ALL) {
            if kv == Kv::Q8_0 && args.kv.is_empty() && !head_dim.is_multiple_of(BLOCK_LEN) {
                println!("  no q8_0 cache: heads of {head_dim} dimensions are no whole blocks");
                continue;
            }
            let found = match kv {
                Kv::F32 => cases_of::<f32>(&recording, kv, &setups),
                Kv::F16 => cases_of::<f16>(&recording, kv, &setups),
                Kv::Q8_0 => cases_of::<Q8_0>(&recording, kv, &setups),
            };
            let found =
                found.with_context(|| format!("{} with {} cache", recording.name, kv.name()))?;
            report::print(&found);
            cases.extend(found);
        }
    }
    if let Some(path) = &args.json {
        report::write_json(path, &cases)?;
    }
    report::conclude(&cases)
}

/// Every level, strategy and team size that was asked for.
fn setups(args: &Args) -> Result<Vec<Setup>> {
    let isas = if args.isa.is_empty() {
        Isa::available().collect()
    } else {
        let isas = args.isa.iter().map(|level| Isa::with_level(*level));
        isas.collect::<Result<Vec<_>, _>>()?
    };
    if let Some(threads) = args.threads.iter().find(|threads| **threads == 0) {
        bail!("expected team sizes of at least 1, found {threads}");
    }
    let mut setups = Vec::new();
    for isa in isas {
        for strategy in chosen(&args.strategy, Strategy::ALL) {
            let threads: &[usize] = if strategy == Strategy::Serial { &[1] } else { &args.threads };
            setups.extend(threads.iter().map(|&threads| Setup { isa, strategy, threads }));
        }
    }
    Ok(setups)
}

/// The list that was given, or everything.
fn chosen<T: Copy>(given: &[T], all: &[T]) -> Vec<T> {
    if given.is_empty() { all.to_vec() } else { given.to_vec() }
}

/// All cases of one recording with one cache type.
fn cases_of<E: ck_ops::CacheElement>(
    recording: &Recording<'_>,
    kv: Kv,
    setups: &[Setup],
) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    let mut levels: Vec<Isa> = setups.iter().map(|setup| setup.isa).collect();
    levels.dedup();
    for isa in levels {
        cases.extend(fed::cases::<E>(recording, kv, isa)?);
    }
    cases.extend(bits::cases::<E>(recording, kv, setups)?);
    Ok(cases)
}
