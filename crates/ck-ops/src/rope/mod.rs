//! Rotary position embedding.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512vnni;
mod config;
#[cfg(target_arch = "aarch64")]
mod neondot;
mod rotate;
mod scalar;
mod scaling;
mod table;
#[cfg(test)]
mod tests;
mod wide;

pub use config::{Pairing, RopeConfig};
pub use scaling::{Llama3, RopeScaling, Yarn};
pub use table::RopeTable;
