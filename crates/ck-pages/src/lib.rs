#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod error;
mod zeroed_slice;

pub use error::PagesError;
pub use zeroed_slice::{CACHE_LINE, LARGE_PAGE, ZeroedSlice};
