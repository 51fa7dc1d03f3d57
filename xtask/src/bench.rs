//! `cargo xtask bench`: builds the benchmarks with the peers that are asked for, and runs them.
//!
//! They are a package of their own, ck-bench, so that the other commands need not build what they need.

use crate::cargo::workspace_root;
use anyhow::{Context, Result};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Arguments of `cargo xtask bench`: those of ck-bench, which `--help` lists.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// What building ggml needs.
const NEEDS: &str = "\
ggml is built from source, which needs cmake, a C++ compiler and libclang:
    Debian, Ubuntu:  apt-get install cmake g++ libclang-dev
    Fedora:          dnf install cmake gcc-c++ clang-devel
    macOS:           brew install cmake llvm
LIBCLANG_PATH names the folder of libclang where it is not found by itself.";

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let peers = peers(&args.arguments);
    let has = |name: &str| peers.iter().any(|peer| peer == name);
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["run", "--release", "--package", "ck-bench", "--bin", "bench"]);
    if has("ggml") && has("ggml-avx2") {
        eprintln!("error: ggml is one build or the other: run the command once for each");
        return Ok(ExitCode::from(2));
    }
    if has("ggml") || has("ggml-avx2") {
        let missing = missing_for_ggml();
        if !missing.is_empty() {
            eprintln!("error: not found: {}\n{NEEDS}", missing.join(", "));
            return Ok(ExitCode::from(2));
        }
        command.args(["--features", "peer-ggml"]);
        command.envs(ggml_features(has("ggml")).iter().map(|name| (name, "ON")));
        // Else the line tables of this workspace's release profile make it an -O2 build.
        command.env("LLAMA_LIB_PROFILE", "Release");
        // A folder for each build: in one where ggml was built already, other variables change nothing.
        let folder = if has("ggml") { "target/ggml" } else { "target/ggml-avx2" };
        command.env("CARGO_TARGET_DIR", workspace_root().join(folder));
    }
    if has("candle") {
        command.args(["--features", "peer-candle"]);
        // It is compared on one thread.
        command.env("RAYON_NUM_THREADS", "1");
    }
    let status = command.arg("--").args(&args.arguments).status().context("cannot start cargo")?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The values of all `--peer` arguments.
fn peers(arguments: &[OsString]) -> Vec<String> {
    let mut peers = Vec::new();
    let mut arguments = arguments.iter().filter_map(|argument| argument.to_str());
    while let Some(argument) = arguments.next() {
        let list = match argument.strip_prefix("--peer") {
            Some("") => arguments.next(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        peers.extend(list.unwrap_or_default().split(',').map(str::to_owned));
    }
    peers.retain(|peer| !peer.is_empty());
    peers
}

/// The variables that let ggml use what this machine has beyond AVX2.
fn ggml_features(widest: bool) -> &'static [&'static str] {
    #[cfg(target_arch = "x86_64")]
    if widest
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512bf16")
    {
        return &["GGML_AVX512", "GGML_AVX512_VNNI", "GGML_AVX512_VBMI", "GGML_AVX512_BF16"];
    }
    let _ = widest;
    &[]
}

/// What building ggml needs and this machine does not have.
fn missing_for_ggml() -> Vec<&'static str> {
    let runs = |program: &OsStr| {
        let mut command = Command::new(program);
        let command = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let compilers = std::env::var_os("CXX").into_iter();
    let mut compilers = compilers.chain(["c++", "g++", "clang++"].map(OsString::from));
    let mut missing = Vec::new();
    if !runs(OsStr::new("cmake")) {
        missing.push("cmake");
    }
    if !compilers.any(|compiler| runs(&compiler)) {
        missing.push("a C++ compiler");
    }
    if !libclang_folders().iter().any(|folder| has_libclang(folder)) {
        missing.push("libclang");
    }
    missing
}

/// Where libclang may be.
fn libclang_folders() -> Vec<PathBuf> {
    if let Some(folder) = std::env::var_os("LIBCLANG_PATH") {
        return vec![folder.into()];
    }
    let mut folders: Vec<PathBuf> = [
        "/usr/lib",
        "/usr/lib64",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/local/lib",
        "/opt/homebrew/opt/llvm/lib",
        "/Library/Developer/CommandLineTools/usr/lib",
    ]
    .map(PathBuf::from)
    .into();
    let llvm = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let llvm = llvm.filter(|entry| entry.file_name().to_string_lossy().starts_with("llvm"));
    folders.extend(llvm.map(|entry| entry.path().join("lib")));
    folders
}

fn has_libclang(folder: &Path) -> bool {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.into_iter().any(|file| {
        let name = file.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libclang.so") || name.starts_with("libclang-") || name == "libclang.dylib"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: &str) -> Vec<String> {
        peers(&arguments.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn peers_are_found_in_every_spelling() {
        assert_eq!(of("--quick --peer ggml --json a"), ["ggml"]);
        assert_eq!(of("--peer=ggml,candle"), ["ggml", "candle"]);
        assert_eq!(of("--peer ggml --peer candle"), ["ggml", "candle"]);
        assert_eq!(of("--filter ggml"), [""; 0]);
        assert_eq!(of("--peer"), [""; 0]);
    }
}
