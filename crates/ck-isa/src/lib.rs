#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(test),
    deny(clippy::print_stdout, clippy::print_stderr, clippy::exit, clippy::disallowed_methods)
)]

mod fma;
mod isa;
mod level;
pub mod load;
mod vector;

pub use fma::fma;
#[cfg(target_arch = "aarch64")]
pub use isa::NeonDot;
#[cfg(target_arch = "x86_64")]
pub use isa::{Avx2, Avx512Vnni};
pub use isa::{Isa, UnavailableLevel};
pub use level::{Features, Level, UnknownLevel};
pub use vector::{MAX_LANES, Vectors};
