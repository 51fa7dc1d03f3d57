//! Files and arguments that cannot be used: status 2 and a sentence.

use crate::recording::{Recording, write};
use crate::run::{Run, SCALAR};
use std::path::Path;

#[test]
fn files_that_are_no_recordings() {
    let whole = Recording::small().to_bytes();
    let refused = |name: &str, bytes: &[u8], parts: &[&str]| {
        let file = format!("{name}.gguf");
        let parts = [parts, &[&file[..]]].concat();
        Run::new(name, &write(&file, bytes), &SCALAR).assert_refused(&parts);
    };
    refused("empty", &[], &["the file ends in the header"]);
    refused("short-magic", b"GG", &["the file ends in the header"]);
    refused("text", b"# Recorded layers\n", &["not a GGUF file", "# Re"]);
    refused("header", &whole[..20], &["the file ends in the header"]);
    refused("metadata", &whole[..100], &["the file ends in"]);
    refused("infos", &whole[..900], &["the file ends in"]);
    refused("data", &whole[..whole.len() - 64], &["golden.input", "bytes"]);
    let mut swapped = whole.clone();
    swapped[4..8].copy_from_slice(&3u32.to_be_bytes());
    refused("swapped", &swapped, &["big-endian"]);
    let mut counts = whole.clone();
    counts[16..24].copy_from_slice(&500_000_000u64.to_le_bytes());
    refused("counts", &counts, &["500000000"]);

    let missing = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-such-file.gguf");
    Run::new("missing", &missing, &SCALAR).assert_refused(&["cannot read", "no-such-file.gguf"]);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    Run::new("folder", folder, &SCALAR).assert_refused(&["cannot read"]);
}

#[test]
fn recordings_with_parts_missing_or_wrong() {
    let refused = |name: &str, change: &dyn Fn(&mut Recording), parts: &[&str]| {
        let mut recording = Recording::small();
        change(&mut recording);
        let golden = recording.write(&format!("{name}.gguf"));
        Run::new(name, &golden, &SCALAR).assert_refused(parts);
    };
    refused("no-input", &|r| r.remove("input"), &["golden.input is missing"]);
    refused("no-stages", &|r| r.stages.clear(), &["golden.input is missing"]);
    refused("no-tokens", &|r| r.n_tokens = 0, &["golden.n_tokens", "at least 1"]);
    refused(
        "more-tokens",
        &|r| r.n_tokens = 6,
        &["golden.input", "expected 6 rows of 64, found 5 rows of 64"],
    );
    refused("huge-tokens", &|r| r.n_tokens = u32::MAX as usize, &["golden"]);
    refused(
        "other-width",
        &|r| r.stages[1].1 = 64,
        &["golden.q", "expected 5 rows of 128, found 10 rows of 64"],
    );
    refused(
        "no-gamma",
        &|r| r.weights.gamma[3] = f32::NAN,
        &["blk.3.attn_norm.weight", "element 3"],
    );
    refused("one-bias", &|r| r.weights.k.bias = None, &["blk.3.attn_k.bias", "missing"]);
    refused("negative-eps", &|r| r.weights.eps = -1.0, &["layer_norm_rms_epsilon"]);
    refused("odd-rope", &|r| r.rope.width = 31, &["rope.dimension_count"]);
}

/// A file may carry fewer recordings; then what is there is compared.
#[test]
fn recordings_with_fewer_stages() {
    let mut recording = Recording::small();
    for stage in ["norm", "q", "k", "v", "attn"] {
        recording.remove(stage);
    }
    let run = Run::new("ends", &recording.write("ends.gguf"), &SCALAR);
    assert_eq!(run.status, Some(0), "{}{}", run.stdout, run.stderr);
    let modes: Vec<_> = run.cases().iter().map(|case| case["mode"].as_str()).collect();
    assert_eq!(modes, [Some("end_to_end"), Some("bits")]);
}

/// Nothing but an input lets only bits be compared, which says nothing of being right.
#[test]
fn arguments_that_cannot_be_met() {
    let golden = Recording::small().write("arguments.gguf");
    let refused = |name: &str, args: &[&str], parts: &[&str]| {
        Run::new(name, &golden, args).assert_refused(parts);
    };
    let foreign = if cfg!(target_arch = "x86_64") { "neondot" } else { "avx2" };
    refused("foreign", &["--isa", foreign], &[foreign, "not available"]);
    refused("one-foreign", &["--isa", &format!("scalar,{foreign}")], &[foreign, "not available"]);
    refused("unknown-level", &["--isa", "sse9"], &["sse9"]);
    refused("unknown-strategy", &["--strategy", "magic"], &["magic", "serial"]);
    refused("unknown-kv", &["--kv", "f64"], &["f64"]);
    refused("no-threads", &["--threads", "0"], &["at least 1", "0"]);
    refused("bad-threads", &["--threads", "two"], &["two"]);
    refused("unknown-option", &["--fast"], &["--fast"]);
}
