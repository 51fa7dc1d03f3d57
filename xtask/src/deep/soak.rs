//! Decoding for a long time, in a process of its own, so that its memory is its own too.

use super::Outcome;
use anyhow::{Context, Result};
use std::process::Command;

pub(super) fn run(minutes: f64) -> Result<Outcome> {
    let program = std::env::current_exe().context("cannot find this program")?;
    Outcome::of(Command::new(program).args(["soak", "--minutes", &minutes.to_string()]))
}
