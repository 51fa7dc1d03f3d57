//! Models and stress of the thread pool.

use super::Outcome;
use super::tools::{SourceToolchain, target_dir};
use crate::cargo::cargo;
use anyhow::Result;

pub(super) fn loom() -> Result<Outcome> {
    // One process a file: a deadlock that loom finds may end the process.
    let arguments = ["test", "--release", "--locked", "-p", "ck-threadpool", "--test", "loom_*"];
    let mut command = cargo(&arguments);
    command.arg("--no-fail-fast").env("RUSTFLAGS", "--cfg loom");
    Outcome::of(command.env("CARGO_TARGET_DIR", target_dir("loom")))
}

pub(super) fn stress() -> Result<Outcome> {
    let arguments = ["test", "--release", "--locked", "-p", "ck-threadpool", "--test", "stress"];
    Outcome::of(cargo(&arguments).args(["--", "--ignored", "--nocapture"]))
}

/// Compiles the pool for systems that it cannot be run on here.
pub(super) fn targets() -> Result<Outcome> {
    let toolchain = match SourceToolchain::make() {
        Ok(toolchain) => toolchain,
        Err(outcome) => return Ok(outcome),
    };
    for target in ["x86_64-pc-windows-msvc", "aarch64-apple-darwin", "aarch64-unknown-linux-gnu"] {
        let arguments = ["check", "-p", "ck-threadpool"];
        let mut command = toolchain.cargo(&arguments, target, &target_dir("targets"));
        if let Outcome::Failed = Outcome::of(&mut command)? {
            return Ok(Outcome::Failed);
        }
    }
    Ok(Outcome::Passed)
}
