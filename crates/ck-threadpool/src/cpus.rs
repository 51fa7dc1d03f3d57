//! How many CPUs' worth of time this process may really use.

/// How many threads can run at once: the CPUs of this process's affinity mask, cut by its container's
/// quota of CPU time, and at least 1.
///
/// This is the default number of a pool's threads. On Linux the quotas of all enclosing control
/// groups (version 2) count; elsewhere it is what the standard library reports.
#[must_use]
pub fn available_cpus() -> usize {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    quotas().iter().fold(cpus, |cpus, quota| limited(cpus, quota))
}

/// `cpus` cut by the text of a control group's `cpu.max`: quota and period in microseconds.
///
/// A share of a CPU does not count, as threads that share one wait for each other; but there is always
/// one. Text that is no quota changes nothing.
fn limited(cpus: usize, cpu_max: &str) -> usize {
    let mut fields = cpu_max.split_ascii_whitespace().map(str::parse::<u64>);
    match (fields.next(), fields.next()) {
        (Some(Ok(quota)), Some(Ok(period))) if period > 0 => {
            let whole = usize::try_from(quota / period).unwrap_or(usize::MAX);
            cpus.min(whole).max(1)
        }
        _ => cpus,
    }
}

/// The texts of `cpu.max` of this process's control group and all groups above it.
#[cfg(target_os = "linux")]
fn quotas() -> Vec<String> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let Some(group) = group.map(|path| path.trim_start_matches('/')) else {
        return Vec::new();
    };
    let root = std::path::Path::new("/sys/fs/cgroup");
    root.join(group)
        .ancestors()
        .take_while(|folder| folder.starts_with(root))
        .filter_map(|folder| std::fs::read_to_string(folder.join("cpu.max")).ok())
        .collect()
}

#[cfg(not(target_os = "linux"))]
fn quotas() -> Vec<String> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Case B32.
    #[test]
    fn a_container_quota_limits_the_default_number_of_threads() {
        for (cpu_max, cpus, expected) in [
            ("400000 100000", 8, 4),
            ("765000 100000", 8, 7),
            ("50000 100000", 8, 1),
            ("max 100000", 8, 8),
            ("garbage", 8, 8),
            ("400000 100000", 2, 2),
            ("400000 100000\n", 8, 4),
            ("400000 0", 8, 8),
            ("400000", 8, 8),
            ("", 8, 8),
            ("-1 100000", 8, 8),
            ("18446744073709551615 1", 8, 8),
        ] {
            assert_eq!(limited(cpus, cpu_max), expected, "{cpu_max:?} with {cpus} CPUs");
        }
    }

    #[test]
    fn this_process_may_use_at_least_one_cpu() {
        assert!(available_cpus() >= 1);
    }
}
