//! What can be wrong with a file, and where.

use crate::settings::Architecture;
use std::fmt;
use std::path::PathBuf;

/// What is wrong with a GGUF file, with a request to it, or with what was to be written.
///
/// Every text says what was expected, what was found, and where. Names that come from the file are
/// quoted and escaped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened or mapped.
    #[error("cannot map {path:?}")]
    Map {
        /// The path as it was given.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The first four bytes are not `GGUF`.
    #[error("not a GGUF file: expected it to begin with \"GGUF\", found \"{}\"", found.escape_ascii())]
    NotGguf {
        /// The first four bytes.
        found: [u8; 4],
    },
    /// The version is a small number in the other byte order: a file for big-endian machines.
    #[error(
        "version {found} is {} with its bytes swapped: this is a big-endian file, expected a little-endian one",
        found.swap_bytes()
    )]
    ByteSwapped {
        /// The version as read in little-endian order.
        found: u32,
    },
    /// A version whose layout this crate does not know.
    #[error("unsupported GGUF version {found}: expected 2 or 3")]
    UnsupportedVersion {
        /// The version.
        found: u32,
    },
    /// The file ends too early.
    #[error("the file ends in {place}: expected {needed} bytes at offset {offset}, found {left}")]
    Truncated {
        /// What was being read.
        place: Place,
        /// Where it begins, in bytes from the start of the file.
        offset: usize,
        /// How many bytes it needs at least.
        needed: u64,
        /// How many bytes the file still has there.
        left: usize,
    },
    /// A key or tensor name is empty or longer than 65535 bytes.
    #[error("{place} has a name of {len} bytes: expected 1 to 65535")]
    NameLength {
        /// Whose name it is.
        place: Place,
        /// Its length in bytes.
        len: u64,
    },
    /// A key, a tensor name or a metadata string is not UTF-8.
    #[error("{place} holds a string that is not UTF-8")]
    NotUtf8 {
        /// What was being read.
        place: Place,
    },
    /// Two metadata entries, or two tensors, have the same name.
    #[error("{place} appears twice: expected every name once")]
    Duplicate {
        /// The entry.
        place: Place,
    },
    /// A metadata value has a type that the format does not define.
    #[error("metadata key {key:?} has value type {number}: expected 0 to 12")]
    UnknownValueType {
        /// The key.
        key: String,
        /// The type's number.
        number: u32,
    },
    /// Arrays within arrays, deeper than anything that a model needs.
    #[error("metadata key {key:?} holds arrays nested more than {limit} deep")]
    NestedTooDeep {
        /// The key.
        key: String,
        /// The deepest nesting that is read.
        limit: usize,
    },
    /// A metadata key that is needed is absent.
    #[error("metadata key {key:?} is missing: expected {expected}")]
    MissingKey {
        /// The key.
        key: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// A metadata value has the wrong type, or a value that cannot be right.
    #[error("metadata key {key:?} is {found}: expected {expected}")]
    BadValue {
        /// The key.
        key: String,
        /// What would be right.
        expected: String,
        /// The value that was found, with its type.
        found: String,
    },
    /// A tensor has no dimension, or more than four.
    #[error("tensor {tensor:?} has {found} dimensions: expected 1 to 4")]
    DimensionCount {
        /// The tensor's name.
        tensor: String,
        /// The number of dimensions.
        found: u32,
    },
    /// A tensor has a dimension of zero.
    #[error("tensor {tensor:?} has zero elements in dimension {axis}: expected at least one")]
    ZeroDimension {
        /// The tensor's name.
        tensor: String,
        /// Which dimension, counted from zero.
        axis: usize,
    },
    /// A tensor's rows are not whole blocks of its type.
    #[error(
        "tensor {tensor:?} has rows of {columns} elements: expected a multiple of {block_len}, the block of {type_name}"
    )]
    PartialBlock {
        /// The tensor's name.
        tensor: String,
        /// Elements in a row.
        columns: u64,
        /// Elements in a block.
        block_len: u64,
        /// The type's name.
        type_name: &'static str,
    },
    /// A tensor is larger than any memory.
    #[error("tensor {tensor:?} with dimensions {dims:?} is larger than any memory")]
    TooLarge {
        /// The tensor's name.
        tensor: String,
        /// Its dimensions in the file's order.
        dims: Vec<u64>,
    },
    /// A tensor's data does not begin at a multiple of the file's alignment.
    #[error("tensor {tensor:?} begins at data offset {offset}: expected a multiple of {alignment}")]
    Misaligned {
        /// The tensor's name.
        tensor: String,
        /// Its offset from the start of the data.
        offset: u64,
        /// The file's alignment.
        alignment: usize,
    },
    /// A tensor's data is not inside the file.
    #[error(
        "tensor {tensor:?} needs {size} bytes at data offset {offset}, but the file has {available} bytes of data"
    )]
    OutsideFile {
        /// The tensor's name.
        tensor: String,
        /// Its offset from the start of the data.
        offset: u64,
        /// Its size in bytes.
        size: u64,
        /// How many bytes of data the file has.
        available: usize,
    },
    /// A tensor has a type that is unknown, or that cannot be used where it stands.
    #[error("tensor {tensor:?} has type {}: expected {expected}", type_text(*number))]
    UnsupportedType {
        /// The tensor's name.
        tensor: String,
        /// The type's number in the file.
        number: u32,
        /// The types that would do.
        expected: &'static str,
    },
    /// The file has fewer layers.
    #[error(
        "layer {layer}: expected a layer below {layers}, the number that the file's metadata gives"
    )]
    NoSuchLayer {
        /// The layer that was asked for; they count from 0.
        layer: usize,
        /// How many there are.
        layers: usize,
    },
    /// The file has no tensor of that name.
    #[error("tensor {tensor:?} is missing")]
    MissingTensor {
        /// The tensor's name.
        tensor: String,
    },
    /// A tensor's dimensions do not agree with the metadata or with another tensor.
    #[error("tensor {tensor:?} has dimensions {found:?}: expected {expected}")]
    BadShape {
        /// The tensor's name.
        tensor: String,
        /// The dimensions that would be right (the first is the row length), and why.
        expected: String,
        /// The dimensions in the file's order.
        found: Vec<usize>,
    },
    /// Some of the Q, K and V projections have a bias and some have none.
    #[error(
        "tensor {missing:?} is missing, but {present:?} is there: expected biases for all of Q, K and V, or for none"
    )]
    PartialBias {
        /// A bias that is absent.
        missing: String,
        /// A bias that is present.
        present: String,
    },
    /// A block of a weight matrix has a scale that is infinite or not a number.
    #[error(
        "tensor {tensor:?} has the scale {scale} in row {row}, block {block}: expected a finite one"
    )]
    NonFiniteScale {
        /// The tensor's name.
        tensor: String,
        /// The row of the block.
        row: usize,
        /// The block's number in its row.
        block: usize,
        /// The scale.
        scale: f32,
    },
    /// A weight matrix that cannot be used for another reason.
    #[error("tensor {tensor:?} cannot be used as weights: {source}")]
    Weights {
        /// The tensor's name.
        tensor: String,
        /// What is wrong with it.
        source: ck_quant::QuantError,
    },
    /// Sizes that no layer can have together.
    #[error("the sizes of layer {layer} do not go together: {source}")]
    Layer {
        /// The layer.
        layer: usize,
        /// What is wrong with them.
        source: ck_fused::LayerError,
    },
    /// What the file says of the rotation makes no sense together.
    #[error("the rotation cannot be computed: {source}")]
    Rotation {
        /// What is wrong with it.
        source: ck_ops::OpError,
    },
    /// An element of a norm weight or bias is infinite or not a number.
    #[error("tensor {tensor:?} has {value} at element {index}: expected a finite number")]
    NonFiniteElement {
        /// The tensor's name.
        tensor: String,
        /// The element, from zero.
        index: usize,
        /// Its value.
        value: f32,
    },
    /// The file is of an architecture whose layers this crate cannot read.
    #[error("architecture {found:?} is not supported: expected one of {}", Architecture::names())]
    UnsupportedArchitecture {
        /// The value of `general.architecture`.
        found: String,
    },
    /// The file asks for something in the attention that would be computed wrongly if it were ignored.
    #[error("{place} asks for {feature}, which is not supported")]
    UnsupportedFeature {
        /// The key or tensor that asks for it.
        place: Place,
        /// What it asks for.
        feature: &'static str,
    },
    /// Data given to the writer does not have the size of its dimensions and type.
    #[error("tensor {tensor:?} was given {found} bytes of data: expected {expected}")]
    DataLength {
        /// The tensor's name.
        tensor: String,
        /// The size that the dimensions and the type ask for.
        expected: u64,
        /// The number of bytes given.
        found: usize,
    },
}

/// A place in a GGUF file, for error texts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// The magic, the version and the two counts.
    Header,
    /// The metadata entries, as announced by the header.
    Metadata {
        /// How many entries there should be.
        count: u64,
    },
    /// The tensor infos, as announced by the header.
    TensorInfos {
        /// How many tensors there should be.
        count: u64,
    },
    /// The key of a metadata entry.
    Entry {
        /// Which entry, from zero.
        index: u64,
    },
    /// A metadata entry whose key is known.
    Key(String),
    /// The name of a tensor.
    TensorInfo {
        /// Which tensor, from zero.
        index: u64,
    },
    /// A tensor whose name is known.
    Tensor(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => write!(f, "the header"),
            Self::Metadata { count } => write!(f, "the metadata of {count} entries"),
            Self::TensorInfos { count } => write!(f, "the list of {count} tensors"),
            Self::Entry { index } => write!(f, "metadata entry {index}"),
            Self::Key(key) => write!(f, "metadata key {key:?}"),
            Self::TensorInfo { index } => write!(f, "tensor entry {index}"),
            Self::Tensor(tensor) => write!(f, "tensor {tensor:?}"),
        }
    }
}

/// The number of a tensor type, with its name if it has one.
fn type_text(number: u32) -> String {
    match crate::TensorType::from_number(number) {
        Some(known) => format!("{number} ({known})"),
        None => format!("{number}, which is unknown"),
    }
}
