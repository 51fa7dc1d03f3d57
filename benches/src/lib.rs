//! Benchmarks of the ck crates beside their peers.
