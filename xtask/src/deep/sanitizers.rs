//! The tests with every memory access checked.

use super::Outcome;
use super::tools::{HOST, REFUSE_LARGE, SourceToolchain, elsewhere, target_dir};
use crate::cargo::{cargo, workspace_root};
use anyhow::Result;

/// AddressSanitizer over the whole workspace: reads and writes outside of what was allocated, and leaks.
pub(super) fn address() -> Result<Outcome> {
    if let Some(outcome) = elsewhere() {
        return Ok(outcome);
    }
    let mut command = cargo(&["test", "--workspace", "--lib", "--bins", "--tests", "--locked"]);
    command
        .args(["--no-fail-fast", "--target", HOST])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .env("ASAN_OPTIONS", REFUSE_LARGE)
        .env("CK_SLOW", "1")
        .env("CARGO_TARGET_DIR", target_dir("address-sanitizer"));
    Outcome::of(&mut command)
}

/// ThreadSanitizer over the whole workspace. The standard library is built with it, else it reports that.
pub(super) fn thread() -> Result<Outcome> {
    if let Some(outcome) = elsewhere() {
        return Ok(outcome);
    }
    let toolchain = match SourceToolchain::make() {
        Ok(toolchain) => toolchain,
        Err(outcome) => return Ok(outcome),
    };
    let known = workspace_root().join("xtask/src/deep/thread-sanitizer.supp");
    let known = format!("suppressions='{}'", known.display());
    let tests = ["test", "--workspace", "--lib", "--bins", "--tests"];
    let mut command = toolchain.cargo(&tests, HOST, &target_dir("thread-sanitizer"));
    command
        .args(["--no-fail-fast", "--", "--test-threads=1"])
        .env("RUSTFLAGS", "-Zsanitizer=thread")
        .env("CK_SLOW", "1")
        // The tests of forked children make threads there.
        .env("TSAN_OPTIONS", format!("die_after_fork=0 halt_on_error=1 {REFUSE_LARGE} {known}"));
    Outcome::of(&mut command)
}
