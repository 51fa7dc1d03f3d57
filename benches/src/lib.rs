//! What the workspace's benchmarks share: contenders as data, samples and their spread, the machine
//! they were taken on, and the records that are kept of them.

pub mod machine;
pub mod pool;
pub mod record;
pub mod round_trip;
pub mod stats;
