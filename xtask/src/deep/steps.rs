//! The table of steps.

use super::{Step, dependencies, emulation, fuzz, pool, sanitizers, soak, users};

/// Every step, in the order in which they run.
pub(super) const STEPS: &[Step] = &[
    Step {
        name: "loom",
        about: "the thread pool's protocol under all schedules of a few preemptions",
        run: |_| pool::loom(),
    },
    Step {
        name: "stress",
        about: "the thread pool under random use for a minute",
        run: |_| pool::stress(),
    },
    Step {
        name: "targets",
        about: "the thread pool compiles for other operating systems and CPUs",
        run: |_| pool::targets(),
    },
    Step {
        name: "no-avx",
        about: "tests and parity on an emulated x86-64 CPU without AVX",
        run: |_| emulation::x86("Nehalem", "scalar"),
    },
    Step {
        name: "no-avx2",
        about: "tests and parity on an emulated x86-64 CPU with all but AVX2",
        run: |_| emulation::x86("max,-avx2", "scalar"),
    },
    Step {
        name: "avx2",
        about: "tests and parity on an emulated x86-64 CPU with AVX2 and no AVX-512",
        run: |_| emulation::x86("Haswell", "scalar,avx2"),
    },
    Step {
        name: "neon",
        about: "tests and parity on an emulated AArch64 CPU without the dot product",
        run: |_| emulation::aarch64("cortex-a53", "scalar"),
    },
    Step {
        name: "neondot",
        about: "tests and parity on an emulated AArch64 CPU with the dot product",
        run: |_| emulation::aarch64("cortex-a76", "scalar,neondot"),
    },
    Step {
        name: "address-sanitizer",
        about: "all tests with every memory access checked against what was allocated",
        run: |_| sanitizers::address(),
    },
    Step {
        name: "thread-sanitizer",
        about: "all tests with every memory access checked for races",
        run: |_| sanitizers::thread(),
    },
    Step {
        name: "fuzz",
        about: "every fuzz target on its corpus for --fuzz-seconds",
        run: |args| fuzz::run(args.fuzz_seconds, &args.fuzz_target),
    },
    Step {
        name: "soak",
        about: "decoding at random for --soak-minutes, against serial scalar code by bits, in flat memory",
        run: |args| soak::run(args.soak_minutes),
    },
    Step {
        name: "dependencies",
        about: "licences, sources and duplicates of everything that is built (cargo-deny)",
        run: |_| dependencies::run(),
    },
    Step {
        name: "packages",
        about: "every package of the workspace builds from itself alone",
        run: |_| users::packages(),
    },
    Step {
        name: "examples",
        about: "every example runs, those too that are packages of their own (candle as a dependency)",
        run: |_| users::examples(),
    },
    Step {
        name: "semver",
        about: "the public interface beside that of the last tag (cargo-semver-checks)",
        run: |_| dependencies::semver(),
    },
];
