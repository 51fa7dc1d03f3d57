#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(test),
    deny(clippy::print_stdout, clippy::print_stderr, clippy::exit, clippy::disallowed_methods)
)]

#[cfg(doctest)]
mod adversary;
mod call;
mod error;
mod layer;
mod phase;
mod runner;
mod scratch;
mod shape;
mod stack;
mod stages;
mod step;
mod strategy;
mod units;
mod weights;

pub use call::DecodeContext;
pub use error::LayerError;
pub use layer::DecodeLayer;
pub use runner::{Observer, Phase, Runner};
pub use scratch::Scratch;
pub use shape::LayerShape;
pub use stack::{StackContext, StackScratch, decode_stack};
pub use stages::{Qkv, Stages};
pub use strategy::{Strategy, UnknownStrategy};
pub use weights::{LayerWeights, Norm, Projection, ProjectionMatrix, Projections};

// What users keep, and hand to other threads.
const _: () = {
    const fn on_any_thread<T: Send + Sync>() {}
    on_any_thread::<DecodeLayer<'static>>();
    on_any_thread::<Scratch<f32>>();
    on_any_thread::<Runner<'static>>();
    on_any_thread::<LayerError>();
};
