//! Records: what a run measured, kept as JSON under `benches/records/<machine>/`.

use crate::machine::Machine;
use crate::measured::Measured;
use crate::stats::Summary;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// One run on one machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Where it was taken.
    pub machine: Machine,
    /// The times.
    pub results: Vec<Outcome>,
    /// How the times of two contenders compare.
    pub ratios: Vec<Ratio>,
    /// Every sample behind them: what a report is made of. Absent in records of other commands.
    #[serde(default)]
    pub cases: Vec<Measured>,
}

/// One contender's time for one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// What was done.
    pub case: String,
    /// Who did it.
    pub contender: String,
    /// Nanoseconds per operation: the median over the samples.
    pub median_ns: f64,
    /// The best sample.
    pub min_ns: f64,
    /// The worst sample.
    pub max_ns: f64,
    /// How many samples there were.
    pub repeats: usize,
    /// Bytes of weights and cache over the median time, where an operation reads any.
    pub gbps: Option<f64>,
    /// Multiplications and additions over the median time, where an operation has any.
    pub gflops: Option<f64>,
}

/// How many times as long as `ours` a peer takes for a case: ratios sample by sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// What was done.
    pub case: String,
    /// The contender of this project.
    pub ours: String,
    /// The contender it is compared with.
    pub peer: String,
    /// The ratio in the middle.
    pub median: f64,
    /// The smallest ratio.
    pub min: f64,
    /// The largest ratio.
    pub max: f64,
}

/// What one operation of a case amounts to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Bytes of weights and cache that are read.
    pub bytes: f64,
    /// Multiply-adds of 8-bit integers.
    pub int_macs: f64,
    /// Multiply-adds of f32.
    pub f32_macs: f64,
}

impl Outcome {
    /// What samples of one contender, in nanoseconds, say.
    #[must_use]
    pub fn new(case: &str, contender: &str, ns: &Summary, work: Work) -> Self {
        let rate = |amount: f64| (amount > 0.0).then(|| amount / ns.median);
        Self {
            case: case.to_owned(),
            contender: contender.to_owned(),
            median_ns: ns.median,
            min_ns: ns.min,
            max_ns: ns.max,
            repeats: ns.samples,
            gbps: rate(work.bytes),
            gflops: rate(2.0 * (work.int_macs + work.f32_macs)),
        }
    }
}

impl Ratio {
    /// The ratio of two contenders' samples.
    #[must_use]
    pub fn new(
        case: &str,
        (ours, our_ns): (&str, &[f64]),
        (peer, peer_ns): (&str, &[f64]),
    ) -> Option<Self> {
        let Summary { median, min, max, .. } = Summary::of_ratios(peer_ns, our_ns)?;
        let [case, ours, peer] = [case, ours, peer].map(str::to_owned);
        Some(Self { case, ours, peer, median, min, max })
    }
}

impl Record {
    /// A record of this machine without results.
    #[must_use]
    pub fn new() -> Self {
        Self {
            machine: Machine::this(),
            results: Vec::new(),
            ratios: Vec::new(),
            cases: Vec::new(),
        }
    }

    /// Reads a record.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is no record.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no record", path.display()))
    }

    /// Writes the record to `path`, a line for every entry of its lists.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let Self { machine, results, ratios, cases } = self;
        let machine = serde_json::to_string_pretty(machine)?.replace('\n', "\n  ");
        let [results, ratios, cases] = [lines(results)?, lines(ratios)?, lines(cases)?];
        let text = format!(
            "{{\n  \"machine\": {machine},\n  \"results\": {results},\n  \"ratios\": {ratios},\n  \"cases\": {cases}\n}}\n"
        );
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Writes the record beside the benchmarks, as `records/<machine>/<date>[-<what>].json`, and returns the
    /// path.
    ///
    /// # Errors
    ///
    /// A folder or file that cannot be written.
    pub fn keep(&self, what: &str) -> Result<PathBuf> {
        let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("records");
        let folder = records.join(self.machine.folder());
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let dash = if what.is_empty() { "" } else { "-" };
        let path = folder.join(format!("{}{dash}{what}.json", self.machine.date));
        self.save(&path)?;
        Ok(path)
    }
}

/// A list as JSON with one entry a line.
fn lines<T: Serialize>(list: &[T]) -> Result<String> {
    let lines: Vec<String> = list.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    Ok(match lines.is_empty() {
        true => "[]".to_owned(),
        false => format!("[\n    {}\n  ]", lines.join(",\n    ")),
    })
}

impl Default for Record {
    fn default() -> Self {
        Self::new()
    }
}
