#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(test),
    deny(clippy::print_stdout, clippy::print_stderr, clippy::exit, clippy::disallowed_methods)
)]

mod error;
mod zeroed_slice;

pub use error::PagesError;
pub use zeroed_slice::{CACHE_LINE, LARGE_PAGE, ZeroedSlice};
