#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(test),
    deny(clippy::print_stdout, clippy::print_stderr, clippy::exit, clippy::disallowed_methods)
)]

mod activations;
#[cfg(doctest)]
mod adversary;
mod block;
mod error;
mod format;
mod gemv;
mod matrix;
mod packed;
pub mod q5_0;
pub mod q8_0;
#[cfg(test)]
mod testing;
mod weights;

pub use activations::QuantizedVector;
#[doc(no_inline)]
pub use ck_isa::{Isa, Level};
pub use error::QuantError;
pub use format::{BLOCK_LEN, Format};
pub use matrix::Matrix;
pub use packed::PackedMatrix;
pub use q5_0::BlockQ5_0;
pub use q8_0::BlockQ8_0;
pub use weights::Weights;
