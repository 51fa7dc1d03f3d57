//! The fuzz targets of `fuzz/`, a workspace of its own.

use super::Outcome;
use super::tools::{REFUSE_LARGE, elsewhere, missing};
use crate::cargo::{cargo, workspace_root};
use anyhow::{Context, Result, bail};
use std::fs;

/// Targets whose bytes must not make the crates ask for memory that a file of this size has no use for.
const SMALL_IN_MEMORY: [&str; 2] = ["gguf", "saved"];

/// First replays every corpus, then runs each target, or those in `only`, for `seconds`, with AddressSanitizer.
///
/// What a run learns is kept in `fuzz/corpus-work`; `fuzz/corpus` has the committed seeds.
pub(super) fn run(seconds: u64, only: &[String]) -> Result<Outcome> {
    if let Some(outcome) = elsewhere().or_else(|| missing(&["cargo-fuzz"])) {
        return Ok(outcome);
    }
    let fuzz = workspace_root().join("fuzz");
    let mut replay = cargo(&["test", "--locked"]);
    replay.current_dir(&fuzz);
    let mut commands = vec![replay];
    let all = targets()?;
    if let Some(unknown) = only.iter().find(|name| !all.contains(*name)) {
        bail!("unknown fuzz target {unknown:?}: expected one of {}", all.join(", "));
    }
    for target in all.into_iter().filter(|name| only.is_empty() || only.contains(name)) {
        let learned = fuzz.join("corpus-work").join(&target);
        fs::create_dir_all(&learned)
            .with_context(|| format!("cannot make {}", learned.display()))?;
        let mut command = cargo(&["fuzz", "run", &target]);
        command
            .arg(learned)
            .arg(fuzz.join("corpus").join(&target))
            .args(["--", "-print_final_stats=1", "-timeout=30", "-max_len=4096"])
            .arg(format!("-max_total_time={seconds}"))
            .env("RUSTC_BOOTSTRAP", "1")
            .env("ASAN_OPTIONS", REFUSE_LARGE);
        if SMALL_IN_MEMORY.contains(&target.as_str()) {
            command.arg("-malloc_limit_mb=16");
        }
        let words = fuzz.join("dictionaries").join(format!("{target}.dict"));
        if words.exists() {
            command.arg(format!("-dict={}", words.display()));
        }
        commands.push(command);
    }
    Outcome::of_all(commands)
}

/// The names of the targets, in order.
fn targets() -> Result<Vec<String>> {
    let folder = workspace_root().join("fuzz").join("fuzz_targets");
    let entries =
        fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}
