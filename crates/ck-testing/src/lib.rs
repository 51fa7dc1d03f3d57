#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod alloc;
pub mod bounds;
pub mod compare;
pub mod generate;
pub mod golden;
pub mod oracle;
pub mod run;
