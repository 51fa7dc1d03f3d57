//! Inputs that break careless kernels, the same ones in every run.
//!
//! Everything comes from a [`Rng`] with a seed, so that a failing case can be repeated. Sizes and offsets are in
//! [`sizes`].

mod blocks;
mod layer;
mod placed;
mod rng;
pub mod sizes;
mod values;

pub use blocks::{Quants, Scales, random_row};
pub use layer::{Biases, Formats, random_layer, with_head_norms};
pub use placed::Placed;
pub use rng::Rng;
pub use values::Values;
