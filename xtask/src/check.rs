//! `cargo xtask check`: what a change must pass, in the order in which it fails soonest.

use crate::cargo::cargo;
use anyhow::{Context, Result};
use std::process::ExitCode;
use std::time::Instant;

/// Arguments of `cargo xtask check`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Go on after a step that failed, and report all of them.
    #[arg(long)]
    keep_going: bool,
}

/// One step: its name, the cargo arguments, and variables of the environment.
struct Step {
    name: &'static str,
    cargo: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
}

const STEPS: &[Step] = &[
    Step { name: "format", cargo: &["fmt", "--all", "--check"], env: &[] },
    Step { name: "tidy", cargo: &["xtask", "tidy"], env: &[] },
    Step {
        name: "lints",
        cargo: &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
        env: &[],
    },
    Step {
        name: "tests",
        cargo: &[
            "test",
            "--workspace",
            "--lib",
            "--bins",
            "--tests",
            "--examples",
            "--locked",
            "--no-fail-fast",
        ],
        env: &[],
    },
    Step {
        name: "doc tests",
        cargo: &["test", "--workspace", "--doc", "--locked", "--no-fail-fast"],
        env: &[],
    },
    Step {
        name: "docs",
        cargo: &["doc", "--workspace", "--no-deps", "--locked"],
        env: &[("RUSTDOCFLAGS", "-D warnings")],
    },
    Step { name: "pictures", cargo: &["xtask", "draw", "--check"], env: &[] },
    Step { name: "parity", cargo: &["xtask", "parity"], env: &[] },
];

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut failed = Vec::new();
    for step in STEPS {
        println!("== {}: cargo {}", step.name, step.cargo.join(" "));
        let start = Instant::now();
        let status = cargo(step.cargo).envs(step.env.iter().copied()).status();
        let status =
            status.with_context(|| format!("cannot start cargo for step {}", step.name))?;
        println!("== {}: {status} after {:.1} s", step.name, start.elapsed().as_secs_f64());
        if !status.success() {
            failed.push(step.name);
            if !args.keep_going {
                break;
            }
        }
    }
    if failed.is_empty() {
        println!("check: all {} steps passed", STEPS.len());
        Ok(ExitCode::SUCCESS)
    } else {
        println!("check: failed: {}", failed.join(", "));
        Ok(ExitCode::FAILURE)
    }
}
