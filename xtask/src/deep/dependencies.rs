//! What everything is built from, by the rules of `deny.toml`.

use super::Outcome;
use super::tools::missing;
use crate::cargo::cargo;
use anyhow::Result;

pub(super) fn run() -> Result<Outcome> {
    if let Some(outcome) = missing(&["cargo-deny"]) {
        return Ok(outcome);
    }
    Outcome::of(&mut cargo(&[
        "deny",
        "--offline",
        "--locked",
        "check",
        "bans",
        "licenses",
        "sources",
    ]))
}
