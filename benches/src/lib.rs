//! Benchmarks of the ck crates beside their peers.
//!
//! The binary `kernels` is for claims: it checks every contender's answer, times all of them in one
//! interleaved run, prints ratios and writes a record. The criterion benches are for working on one kernel.

pub mod contender;
pub mod gemv;
pub mod memory;
pub mod peers;
pub mod quantize;
pub mod record;
pub mod timing;
