//! `cargo xtask deep`: the checks that take minutes or need tools that not every machine has.
//!
//! A step whose tools are missing is reported as not run, and fails the command unless
//! `--allow-missing` is given. A new step is one entry in [`STEPS`].

mod dependencies;
mod emulation;
mod fuzz;
mod pool;
mod sanitizers;
mod soak;
mod steps;
mod tools;
mod users;

use anyhow::{Context, Result, bail};
use std::process::{Command, ExitCode};
use std::time::Instant;
use steps::STEPS;

/// Arguments of `cargo xtask deep`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only this step; can be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Print the steps and run none.
    #[arg(long)]
    list: bool,
    /// Let steps whose tools are missing pass.
    #[arg(long)]
    allow_missing: bool,
    /// How long each fuzz target runs.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    fuzz_seconds: u64,
    /// Run only this fuzz target; can be given several times.
    #[arg(long, value_name = "NAME")]
    fuzz_target: Vec<String>,
    /// How long the soak runs.
    #[arg(long, value_name = "MINUTES", default_value_t = 5.0)]
    soak_minutes: f64,
}

/// One step.
struct Step {
    name: &'static str,
    about: &'static str,
    run: fn(&Args) -> Result<Outcome>,
}

/// How a step ended.
enum Outcome {
    Passed,
    Failed,
    /// It could not be run, and why.
    Missing(String),
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.list {
        for step in STEPS {
            println!("{:18} {}", step.name, step.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = args.only.iter().find(|name| STEPS.iter().all(|s| s.name != **name)) {
        let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("unknown step {unknown:?}: expected one of {}", known.join(", "));
    }
    let wanted = |step: &&Step| args.only.is_empty() || args.only.iter().any(|n| n == step.name);
    let (mut failed, mut missing) = (Vec::new(), Vec::new());
    for step in STEPS.iter().filter(wanted) {
        println!("== {}: {}", step.name, step.about);
        let start = Instant::now();
        let outcome = (step.run)(args).with_context(|| format!("step {}", step.name))?;
        let (word, seconds) = (outcome.word(), start.elapsed().as_secs_f64());
        println!("== {}: {word} after {seconds:.1} s", step.name);
        match outcome {
            Outcome::Passed => {}
            Outcome::Failed => failed.push(step.name),
            Outcome::Missing(_) => missing.push(step.name),
        }
    }
    println!("deep: failed: {}; not run: {}", list(&failed), list(&missing));
    let good = failed.is_empty() && (missing.is_empty() || args.allow_missing);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Outcome {
    fn of(command: &mut Command) -> Result<Self> {
        let status = command.status().context("cannot start cargo")?;
        Ok(if status.success() { Self::Passed } else { Self::Failed })
    }

    /// Runs commands in order, up to the first that fails.
    fn of_all(commands: impl IntoIterator<Item = Command>) -> Result<Self> {
        for mut command in commands {
            if let failed @ Self::Failed = Self::of(&mut command)? {
                return Ok(failed);
            }
        }
        Ok(Self::Passed)
    }

    fn word(&self) -> String {
        match self {
            Self::Passed => "passed".to_owned(),
            Self::Failed => "failed".to_owned(),
            Self::Missing(what) => format!("not run, {what}"),
        }
    }
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
