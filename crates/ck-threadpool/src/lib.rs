#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(test),
    deny(clippy::print_stdout, clippy::print_stderr, clippy::exit, clippy::disallowed_methods)
)]

#[cfg(doctest)]
mod adversary;
mod affinity;
mod builder;
mod counter;
mod cpus;
mod fork;
#[cfg(not(loom))]
mod global;
mod local;
mod parker;
mod pool;
mod seat;
mod shared;
mod slice;
mod split;
mod sync;
mod taken;
mod team;
mod wait;
mod word;

pub use builder::{BuildError, Builder};
pub use counter::WorkCounter;
pub use cpus::available_cpus;
#[cfg(not(loom))]
pub use global::global;
pub use pool::ThreadPool;
pub use slice::{Plan, Planned, SharedSlice};
pub use split::split_blocks;
pub use team::{Interrupted, Team, solo};
pub use wait::WaitPolicy;

// What users keep, and hand to other threads.
const _: () = {
    const fn on_any_thread<T: Send + Sync>() {}
    on_any_thread::<ThreadPool>();
    on_any_thread::<WorkCounter>();
    on_any_thread::<SharedSlice<'static, f32>>();
    on_any_thread::<BuildError>();
};
