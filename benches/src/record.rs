//! Records: what a run measured, kept beside the code as JSON by machine and date.

use crate::machine::Machine;
use crate::stats::Summary;
use anyhow::{Context, Result};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// One contender's time for one case.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// What was done.
    pub case: String,
    /// By how many threads.
    pub threads: usize,
    /// Who did it.
    pub contender: String,
    /// Nanoseconds per operation.
    pub ns: Summary,
    /// The same in units of the reference measured beside it, sample by sample.
    pub ratio: Summary,
}

/// A run's outcome.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// Where it was taken.
    pub machine: Machine,
    /// What the ratios refer to, and its own time in nanoseconds over the run.
    pub reference: (String, Summary),
    /// The times.
    pub entries: Vec<Entry>,
}

impl Record {
    /// Writes `benches/records/<machine>/<name>-<date>.json` and returns the path.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn save(&self, name: &str) -> Result<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("records");
        let folder = folder.join(self.machine.folder());
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let path = folder.join(format!("{name}-{}.json", self.machine.date));
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}
