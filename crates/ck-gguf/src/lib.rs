#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(test),
    deny(clippy::print_stdout, clippy::print_stderr, clippy::exit, clippy::disallowed_methods)
)]

mod attention;
mod convert;
mod directory;
mod error;
mod file;
mod layer;
mod map;
mod metadata;
mod reader;
mod rope;
mod settings;
mod tensor;
mod tensor_type;
mod value;
mod weights;
mod writer;

pub use convert::FromValue;
pub use error::{Error, Place};
pub use file::GgufFile;
pub use layer::{AttentionLayer, Warning};
pub use map::MappedFile;
pub use metadata::Metadata;
pub use rope::DEFAULT_ROPE_BASE;
pub use tensor::Tensor;
pub use tensor_type::TensorType;
pub use value::{Array, Value, ValueType};
pub use writer::GgufWriter;
