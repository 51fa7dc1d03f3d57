//! The machine that a record was taken on.

use crate::peaks::Peaks;
use crate::state::State;
use ck_quant::Isa;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::process::Command;

/// What a reader needs to know of the machine and the build.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// The CPU's name, as the system tells it.
    pub cpu: String,
    /// How many CPUs the process may use.
    pub cpus: usize,
    /// The levels that run here.
    pub levels: Vec<String>,
    /// The system's rule for large pages: `always`, `madvise` or `never`.
    pub large_pages: String,
    /// Operating system, kernel and architecture.
    pub system: String,
    /// The compiler.
    pub rustc: String,
    /// The commit that was built; with `+` if files were changed.
    pub revision: String,
    /// When, in UTC: `2026-11-30T1234Z`.
    pub date: String,
    /// What the machine could do at the start of the run.
    #[serde(default)]
    pub state: Option<State>,
    /// What the arithmetic of the best level can do.
    #[serde(default)]
    pub peaks: Option<Peaks>,
    /// Bytes of weights that streaming cases went through in turn.
    #[serde(default)]
    pub streamed_bytes: Option<usize>,
}

impl Machine {
    /// Asks the system. What it does not tell is `unknown`.
    #[must_use]
    pub fn this() -> Self {
        let dirty = output("git", &["status", "--porcelain", "--untracked-files=no"]);
        let mark = if dirty.as_deref().is_some_and(|text| !text.is_empty()) { "+" } else { "" };
        let known = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
        Self {
            cpu: known(cpu_name()),
            cpus: ck_threadpool::available_cpus(),
            levels: Isa::available().map(|isa| isa.to_string()).collect(),
            large_pages: known(large_pages()),
            system: known(output("uname", &["-srm"])),
            rustc: known(output("rustc", &["--version"])),
            revision: known(output("git", &["rev-parse", "--short=12", "HEAD"])) + mark,
            date: known(output("date", &["-u", "+%Y-%m-%dT%H%MZ"])),
            state: None,
            peaks: None,
            streamed_bytes: None,
        }
    }

    /// A short name for a folder: the CPU's name in small letters, digits and hyphens, and its count.
    #[must_use]
    pub fn folder(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' };
        let words: String = self.cpu.replace("(R)", "").chars().map(plain).collect();
        let words: Vec<&str> = words.split_whitespace().collect();
        format!("{}-{}cpu", words.join("-"), self.cpus)
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, cpus, levels, large_pages, system, rustc, revision, .. } = self;
        writeln!(f, "{cpu}, {cpus} CPUs, levels {}, large pages: {large_pages}", levels.join(" "))?;
        write!(f, "{system}, {rustc}, revision {revision}")?;
        if let Some(State { round_trip_ns, read_gbps, read_all_gbps, clock_ghz }) = self.state {
            let trip = round_trip_ns.map_or_else(|| "none".to_owned(), |ns| format!("{ns:.0} ns"));
            write!(
                f,
                "\nread from memory {read_gbps:.1} GB/s by one thread, {read_all_gbps:.1} by all; "
            )?;
            write!(f, "line round trip {trip}; clock about {clock_ghz:.2} GHz")?;
        }
        if let Some(Peaks { f32_macs_per_ns, int_macs_per_ns }) = self.peaks {
            write!(
                f,
                "\nmultiply-adds per ns: {f32_macs_per_ns:.1} f32, {int_macs_per_ns:.1} of 8 bits"
            )?;
        }
        Ok(())
    }
}

fn cpu_name() -> Option<String> {
    let text = std::fs::read_to_string(Path::new("/proc/cpuinfo")).ok()?;
    let field = |name| text.lines().find(|line| line.starts_with(name))?.split(": ").nth(1);
    let name = field("model name")?;
    let numbers = ["cpu family", "model\t", "stepping"].map(|name| field(name).unwrap_or("?"));
    Some(format!("{name} family {} model {} stepping {}", numbers[0], numbers[1], numbers[2]))
}

/// The word in brackets among the system's choices.
fn large_pages() -> Option<String> {
    let rule = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok()?;
    Some(rule.split('[').nth(1)?.split(']').next()?.to_owned())
}

fn output(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
