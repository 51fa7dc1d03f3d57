//! The tests under emulated CPUs, each told which levels it must find.

use super::Outcome;
use super::tools::{HOST, SourceToolchain, elsewhere, missing, target_dir};
use crate::cargo::cargo;
use anyhow::Result;
use std::process::Command;

/// The tests of everything that has kernels, or chooses among them.
const TESTS: [&str; 12] = [
    "test",
    "-p",
    "ck-isa",
    "-p",
    "ck-quant",
    "-p",
    "ck-ops",
    "-p",
    "ck-fused",
    "--lib",
    "--tests",
    "--no-fail-fast",
];

/// This program, to compare all recordings at all levels that the CPU has, with all cache types.
///
/// One strategy with a team of two: what differs from CPU to CPU is the levels, and the tests above
/// compare all strategies at each of them by bits. All of them here would take an hour.
const PARITY: [&str; 9] =
    ["run", "-p", "xtask", "--", "parity", "--strategy", "barrier", "--threads", "2"];

/// The ordinary build of this machine on an emulated CPU, which has exactly `levels`.
pub(super) fn x86(cpu: &str, levels: &str) -> Result<Outcome> {
    if let Some(outcome) = elsewhere().or_else(|| missing(&["qemu-x86_64"])) {
        return Ok(outcome);
    }
    let runner = format!("qemu-x86_64 -cpu {cpu}");
    Outcome::of_all(tests_and_parity(|arguments| {
        let command = cargo(&[&arguments[..1], &["--locked"], &arguments[1..]].concat());
        emulated(command, HOST, &runner, levels)
    }))
}

/// A build for AArch64 on an emulated CPU, which has exactly `levels`.
pub(super) fn aarch64(cpu: &str, levels: &str) -> Result<Outcome> {
    const TARGET: &str = "aarch64-unknown-linux-gnu";
    const LINKER: &str = "aarch64-linux-gnu-gcc";
    if let Some(outcome) = elsewhere().or_else(|| missing(&["qemu-aarch64", LINKER])) {
        return Ok(outcome);
    }
    let toolchain = match SourceToolchain::make() {
        Ok(toolchain) => toolchain,
        Err(outcome) => return Ok(outcome),
    };
    let runner = format!("qemu-aarch64 -cpu {cpu} -L /usr/aarch64-linux-gnu");
    let folder = target_dir("aarch64");
    Outcome::of_all(tests_and_parity(|arguments| {
        let mut command = toolchain.cargo(arguments, TARGET, &folder);
        command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER);
        emulated(command, TARGET, &runner, levels)
    }))
}

/// The two commands of an emulated CPU.
fn tests_and_parity(command: impl Fn(&[&str]) -> Command) -> [Command; 2] {
    [command(&TESTS), command(&PARITY)]
}

/// `command` with the programs that it builds for `target` run by `runner`.
fn emulated(mut command: Command, target: &str, runner: &str, levels: &str) -> Command {
    let variable = target.replace('-', "_").to_uppercase();
    command
        .env(format!("CARGO_TARGET_{variable}_RUNNER"), runner)
        .env("CK_EXPECT_LEVELS", levels)
        .env("CK_SLOW", "1");
    command
}
