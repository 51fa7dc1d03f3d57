//! The layer through its public interface: against the oracle, against the composition of the operations,
//! and in every way in which a call can fail.

mod cases;
mod compose;
mod errors;
mod failures;
mod faults;
mod pinned;
mod sample;
mod stages;
mod strategy;
