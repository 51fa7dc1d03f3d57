//! Rotary position embedding.

mod config;
mod scalar;
mod table;
#[cfg(test)]
mod tests;

pub use config::{Pairing, RopeConfig};
pub use table::RopeTable;
