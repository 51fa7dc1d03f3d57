//! The workspace's own commands. `cargo xtask --help` lists them.

mod cargo;
mod check;
mod deep;

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
    /// Everything a change must pass: format, lints, tests, doc tests, docs.
    Check(check::Args),
    /// The checks that take minutes or special tools: models, sanitizers, stress.
    Deep(deep::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Check(args) => check::run(&args),
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
