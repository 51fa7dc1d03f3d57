//! Models and stress of the thread pool.

use super::Outcome;
use super::tools::target_dir;
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
