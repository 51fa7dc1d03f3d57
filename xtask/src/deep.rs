//! `cargo xtask deep`: the checks that take minutes or need tools that not every machine has.
//!
//! A step whose tools are missing is reported as not run, and fails the command unless
//! `--allow-missing` is given. A new step is one entry in [`STEPS`].

use crate::cargo::{cargo, workspace_root};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

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
}

/// One step.
struct Step {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<Outcome>,
}

/// How a step ended.
enum Outcome {
    Passed,
    Failed,
    /// It could not be run, and why.
    Missing(String),
}

const STEPS: &[Step] = &[
    Step {
        name: "loom",
        about: "the thread pool's protocol under all schedules of a few preemptions",
        run: loom,
    },
    Step { name: "stress", about: "the thread pool under random use for a minute", run: stress },
    Step {
        name: "thread-sanitizer",
        about: "the thread pool's tests with every memory access checked for races",
        run: thread_sanitizer,
    },
    Step {
        name: "targets",
        about: "the thread pool compiles for other operating systems and CPUs",
        run: targets,
    },
];

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
        let outcome = (step.run)().with_context(|| format!("step {}", step.name))?;
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

/// Where a step builds, apart from the ordinary builds and from other steps.
fn target_dir(step: &str) -> PathBuf {
    workspace_root().join("target").join("deep").join(step)
}

fn loom() -> Result<Outcome> {
    // One process a file: a deadlock that loom finds may end the process.
    let arguments = ["test", "--release", "--locked", "-p", "ck-threadpool", "--test", "loom_*"];
    let mut command = cargo(&arguments);
    command.arg("--no-fail-fast").env("RUSTFLAGS", "--cfg loom");
    Outcome::of(command.env("CARGO_TARGET_DIR", target_dir("loom")))
}

fn stress() -> Result<Outcome> {
    let arguments = ["test", "--release", "--locked", "-p", "ck-threadpool", "--test", "stress"];
    Outcome::of(cargo(&arguments).args(["--", "--ignored", "--nocapture"]))
}

/// The folder of a toolchain that can build the standard library, or why there is none.
fn toolchain() -> Result<PathBuf, Outcome> {
    let folder = target_dir("toolchain");
    let script = workspace_root().join("xtask").join("scripts").join("toolchain-with-source.sh");
    let status = Command::new("bash").arg(script).arg(&folder).status();
    if status.is_ok_and(|status| status.success()) {
        Ok(folder.join("toolchain"))
    } else {
        let why = "the library source of this toolchain could not be had";
        Err(Outcome::Missing(why.to_owned()))
    }
}

/// A command of the cargo in `toolchain`, which builds the standard library as well.
fn cargo_with_std(toolchain: &Path, step: &str) -> Command {
    let bin = toolchain.join("bin");
    let mut command = Command::new(bin.join("cargo"));
    command
        .current_dir(workspace_root())
        // Set by the outer cargo, it would lead rustc to the outer toolchain's library folder.
        .env_remove("LD_LIBRARY_PATH")
        .env("RUSTC", bin.join("rustc"))
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", target_dir(step));
    command
}

fn thread_sanitizer() -> Result<Outcome> {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    if !cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        return Ok(Outcome::Missing(format!("it is set up for {TARGET} only")));
    }
    let toolchain = match toolchain() {
        Ok(toolchain) => toolchain,
        Err(missing) => return Ok(missing),
    };
    let mut command = cargo_with_std(&toolchain, "thread-sanitizer");
    command
        .args(["test", "-p", "ck-threadpool", "--tests", "-Zbuild-std", "--target", TARGET])
        .args(["--no-fail-fast", "--", "--test-threads=1"])
        .env("RUSTFLAGS", "-Zsanitizer=thread")
        // The tests of forked children make threads there.
        .env("TSAN_OPTIONS", "die_after_fork=0 halt_on_error=1");
    Outcome::of(&mut command)
}

fn targets() -> Result<Outcome> {
    let toolchain = match toolchain() {
        Ok(toolchain) => toolchain,
        Err(missing) => return Ok(missing),
    };
    let targets = ["x86_64-pc-windows-msvc", "aarch64-apple-darwin", "aarch64-unknown-linux-gnu"];
    for target in targets {
        let mut command = cargo_with_std(&toolchain, "targets");
        command.args(["check", "-p", "ck-threadpool", "-Zbuild-std", "--target", target]);
        if let Outcome::Failed = Outcome::of(&mut command)? {
            return Ok(Outcome::Failed);
        }
    }
    Ok(Outcome::Passed)
}
