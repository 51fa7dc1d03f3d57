//! What everything is built from, and what others build on.

use super::Outcome;
use super::tools::missing;
use crate::cargo::{cargo, workspace_root};
use anyhow::{Context, Result};
use std::process::Command;

/// The rules of `deny.toml`, for everything that is built by default, and, except for duplicates, for the
/// benchmarks' peers too.
pub(super) fn run() -> Result<Outcome> {
    if let Some(outcome) = missing(&["cargo-deny"]) {
        return Ok(outcome);
    }
    let everything =
        cargo(&["deny", "--offline", "--locked", "check", "bans", "licenses", "sources"]);
    let arguments =
        ["deny", "--offline", "--locked", "--all-features", "check", "licenses", "sources"];
    Outcome::of_all([everything, cargo(&arguments)])
}

/// The public interface of the published crates beside that of the last release, which is the last tag.
pub(super) fn semver() -> Result<Outcome> {
    let Some(tag) = last_tag()? else {
        println!("nothing was released yet, so there is no promise that a change could break");
        return Ok(Outcome::Passed);
    };
    if let Some(outcome) = missing(&["cargo-semver-checks"]) {
        return Ok(outcome);
    }
    let mut command = cargo(&["semver-checks", "--workspace", "--baseline-rev", &tag]);
    Outcome::of(command.env("RUSTC_BOOTSTRAP", "1"))
}

/// The newest tag that leads here, if there is one.
fn last_tag() -> Result<Option<String>> {
    let arguments = ["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"];
    let mut command = Command::new("git");
    let output = command.args(arguments).current_dir(workspace_root()).output();
    let output = output.context("cannot start git")?;
    let tag = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok((output.status.success() && !tag.is_empty()).then_some(tag))
}
