//! Runs the program.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// What a run left behind.
pub(crate) struct Run {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The file that `--json` asked for, if it was written.
    pub(crate) json: Option<Value>,
}

impl Run {
    /// `cargo xtask parity --json` with one recording and more arguments. `name` is the test's own.
    pub(crate) fn new(name: &str, golden: &Path, args: &[&str]) -> Self {
        let json = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.json"));
        // Left from an earlier run of the tests.
        let _ = std::fs::remove_file(&json);
        let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(["parity", "--golden"])
            .arg(golden)
            .arg("--json")
            .arg(&json)
            .args(args)
            .output()
            .expect("the program starts");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        let json = std::fs::read(&json).ok();
        Self {
            status: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            json: json.map(|json| serde_json::from_slice(&json).expect("JSON")),
        }
    }

    /// The cases of the JSON file.
    pub(crate) fn cases(&self) -> &[Value] {
        let cases = self.json.as_ref().and_then(|json| json["cases"].as_array());
        cases.map(Vec::as_slice).unwrap_or_default()
    }

    /// Mode and stage of every case that does not hold.
    pub(crate) fn failed(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let failed = self.cases().iter().filter(|case| case["ok"] != true);
        failed.map(|case| (text(&case["mode"]), text(&case["stage"]))).collect()
    }

    /// Asserts that the run ended as a file or usage error whose sentence has the given parts.
    #[track_caller]
    pub(crate) fn assert_refused(&self, parts: &[&str]) {
        assert_eq!(self.status, Some(2), "{}{}", self.stdout, self.stderr);
        assert!(self.stderr.contains("error"), "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "{:?} does not say {part:?}", self.stderr);
        }
        assert!(self.json.is_none(), "nothing was compared");
    }
}

/// Only the serial scalar run.
pub(crate) const SCALAR: [&str; 6] = ["--isa", "scalar", "--strategy", "serial", "--kv", "f32"];
