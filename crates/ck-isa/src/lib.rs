#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod fma;
mod level;

pub use fma::fma;
pub use level::{Features, Isa, Level, UnavailableLevel, UnknownLevel};
