//! What a process holds and uses, looked at now and then.

use std::fs;
use std::time::Duration;

/// Resident memory and threads of this process at every look.
#[derive(Default)]
pub(super) struct Memory {
    resident: Vec<f64>,
    looks: usize,
}

/// The growth from the first half of the looks to the second that is not a leak: caches of random capacities
/// come and go.
const TOLERATED: f64 = 1.1;

impl Memory {
    /// Looks, and says what there is.
    pub(super) fn look(&mut self) -> String {
        self.looks += 1;
        let Some((resident, threads)) = status() else {
            return "memory unknown on this system".to_owned();
        };
        self.resident.push(resident);
        format!("{resident:.1} MiB resident, {threads} threads")
    }

    pub(super) const fn looks(&self) -> usize {
        self.looks
    }

    /// Whether the second half of the looks found more than the first; none after fewer than four looks.
    pub(super) fn growth(&self) -> Option<Result<String, String>> {
        let (first, second) = self.resident.split_at(self.resident.len() / 2);
        if first.len() < 2 {
            return None;
        }
        let most = |looks: &[f64]| looks.iter().copied().fold(0.0, f64::max);
        let (first, second) = (most(first), most(second));
        let found =
            format!("at most {first:.1} MiB in the first half, {second:.1} MiB in the second");
        Some(if second <= TOLERATED * first {
            Ok(format!("memory is flat: {found}"))
        } else {
            Err(format!("memory grows: {found}"))
        })
    }
}

/// How long this thread has been on a CPU, where the system tells.
pub(super) fn time_on_cpu() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// Resident memory in MiB and the number of threads, where the system tells.
fn status() -> Option<(f64, usize)> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<usize>().ok()
    };
    Some((field("VmRSS:")? as f64 / 1024.0, field("Threads:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth(resident: &[f64]) -> Option<bool> {
        let memory = Memory { resident: resident.to_vec(), looks: resident.len() };
        memory.growth().map(|growth| growth.is_ok())
    }

    #[test]
    fn growth_is_told_from_memory_that_comes_and_goes() {
        assert_eq!(growth(&[10.0, 12.0, 11.0]), None);
        assert_eq!(growth(&[10.0, 12.0, 11.0, 12.5, 9.0]), Some(true));
        assert_eq!(growth(&[10.0, 11.0, 12.0, 13.0]), Some(false));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn time_passes_while_there_is_work_and_not_while_asleep() {
        let start = time_on_cpu().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let slept = time_on_cpu().unwrap() - start;
        assert!(slept < Duration::from_millis(100), "{slept:?}");
        while time_on_cpu().unwrap() - start < Duration::from_millis(20) {}
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_that_is_kept_is_seen() {
        let (before, threads) = status().unwrap();
        let kept = std::hint::black_box(vec![1u8; 64 << 20]);
        let (after, _) = status().unwrap();
        assert!(after > before + 32.0, "{before} MiB, then {after} MiB");
        assert!(threads >= 1 && kept[1] == 1);
    }
}
