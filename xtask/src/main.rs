//! The workspace's own commands. `cargo xtask --help` lists them.

mod accuracy;
mod bench;
mod cargo;
mod check;
mod deep;
mod draw;
mod parity;
mod soak;
mod tidy;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The commands of the ck workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// How far attention is from the f64 oracle, for every type of cache and many lengths.
    Accuracy(accuracy::Args),
    /// Strategies, levels, teams and peers, timed in turns in one run, with tables and charts. Builds ck-bench first, also
    /// for its own --help.
    Bench(bench::Args),
    /// Everything a change must pass: format, tidiness, lints, tests, doc tests, docs, parity.
    Check(check::Args),
    /// Every strategy and SIMD level against what llama.cpp recorded in real layers, and by bits.
    Parity(parity::Args),
    /// Decoding at random for a long time, against serial scalar code by bits, in memory that stays flat.
    Soak(soak::Args),
    /// Rules that a script can hold: lengths, features of kernels, unsafe, forbidden words.
    Tidy,
    /// The pictures of the documentation, written to docs/images or compared with what is there.
    Draw(draw::Args),
    /// The checks that take minutes or special tools: models, sanitizers, stress.
    Deep(deep::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Accuracy(args) => accuracy::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Parity(args) => parity::run(&args),
        Command::Soak(args) => soak::run(&args),
        Command::Tidy => tidy::run(&cargo::workspace_root()),
        Command::Draw(args) => draw::run(&args),
        Command::Deep(args) => deep::run(&args),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
