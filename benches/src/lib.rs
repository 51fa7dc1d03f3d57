//! Benchmarks of the ck crates beside their peers; README.md has the map.
//!
//! The binaries are for claims: they check every contender's answer, time all of them in turns in one run, print
//! ratios and write a record. The criterion benches are for working on one kernel.

#![allow(missing_debug_implementations, reason = "nobody depends on it")]

pub mod attention;
pub mod case;
pub mod contender;
pub mod context;
pub mod gemv;
pub mod layer;
pub mod machine;
pub mod measured;
pub mod memory;
pub mod model;
pub mod peaks;
pub mod peers;
pub mod pool;
pub mod quantize;
pub mod record;
pub mod report;
pub mod round_trip;
pub mod session;
pub mod state;
pub mod stats;
pub mod suite;
pub mod timing;

/// The program in the workspace's README, so that it compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
