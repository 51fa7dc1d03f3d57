//! Records: what was measured where, as JSON under `benches/records/<machine>/`.

use crate::timing::Timing;
use anyhow::{Context, Result};
use ck_quant::Level;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// One run on one machine.
#[derive(Debug, Serialize)]
pub struct Record {
    /// When, in UTC: `2026-11-30T12:34:56Z`.
    pub date: String,
    /// The revision of this repository, with `-dirty` where it had changes.
    pub revision: String,
    /// The processor's name for itself.
    pub cpu: String,
    /// How many CPUs the process may use.
    pub cpus: usize,
    /// The levels of this machine.
    pub levels: Vec<String>,
    /// The system's rule for large pages.
    pub large_pages: String,
    /// What was measured.
    pub cases: Vec<CaseRecord>,
}

/// All contenders of one case.
#[derive(Debug, Serialize)]
pub struct CaseRecord {
    /// The case.
    pub name: String,
    /// Bytes of weights or activations that one call reads.
    pub bytes: usize,
    /// Samples of each contender.
    pub repeats: usize,
    /// What the samples say.
    pub timings: Vec<Timing>,
}

impl Record {
    /// A record without cases.
    #[must_use]
    pub fn new() -> Self {
        let available = |level: &Level| ck_quant::Isa::with_level(*level).is_ok();
        Self {
            date: now(),
            revision: revision(),
            cpu: cpu(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            levels: Level::ALL
                .iter()
                .filter(|level| available(level))
                .map(Level::to_string)
                .collect(),
            large_pages: large_pages(),
            cases: Vec::new(),
        }
    }

    /// Writes the record into a folder named after the machine, under `records`, and returns the file.
    ///
    /// # Errors
    ///
    /// A folder or file that cannot be written.
    pub fn write(&self, records: &Path, what: &str) -> Result<PathBuf> {
        let folder = records.join(self.machine());
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let file = folder.join(format!("{}-{what}.json", self.date.replace(':', "")));
        let json = serde_json::to_string_pretty(self)? + "\n";
        fs::write(&file, json).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(file)
    }

    /// The processor's name as a folder's name.
    fn machine(&self) -> String {
        let words = self.cpu.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
        let name = words.collect::<Vec<_>>().join("-").to_lowercase();
        format!("{name}-{}cpu", self.cpus)
    }
}

impl Default for Record {
    fn default() -> Self {
        Self::new()
    }
}

fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let name = field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    match (field("cpu family"), field("model\t")) {
        (Some(family), Some(model)) => format!("{name} family {family} model {model}"),
        _ => name,
    }
}

fn large_pages() -> String {
    let rule =
        fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let chosen = rule.split_whitespace().find(|word| word.starts_with('['));
    chosen.map_or_else(|| "unknown".to_owned(), |word| word.trim_matches(['[', ']']).to_owned())
}

fn revision() -> String {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    match output {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => "unknown".to_owned(),
    }
}

/// The time now, by the civil calendar in UTC.
fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (mut year, mut day) = (1970, days);
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1)
}
