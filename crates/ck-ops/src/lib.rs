#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(test),
    deny(clippy::print_stdout, clippy::print_stderr, clippy::exit, clippy::disallowed_methods)
)]

mod error;
mod exp;
mod finite;
mod flash_decode;
mod halves;
mod kv_cache;
mod memory;
mod rmsnorm;
mod rope;
#[cfg(test)]
mod testing;

pub use error::OpError;
pub use exp::{exp, tanh};
pub use flash_decode::{
    AttendScratch, Attention, Context, HEADS_PER_ITEM, WorkItem, attend_chunk, flash_decode,
    flash_decode_heads, merge, partial_len,
};
pub use kv_cache::{
    CHUNK, CacheElement, CacheShape, KvCache, NewHead, NewPosition, Q8_0, SavedCacheError,
    SavedPart,
};
pub use rmsnorm::rms_norm;
pub use rope::{Llama3, Pairing, RopeConfig, RopeScaling, RopeTable, Yarn};
