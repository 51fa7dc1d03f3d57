//! Metadata values: their types, how they are read, and what they convert to.

use crate::reader::{Fault, Reader};
use std::fmt;

/// The deepest nesting of arrays that is read: an array of arrays of arrays of arrays.
pub(crate) const MAX_NESTING: usize = 4;

/// The type of a metadata value, with the number that stands for it in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "each variant is the Rust type of its name")]
pub enum ValueType {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    String = 8,
    Array = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
}

impl ValueType {
    const ALL: [Self; 13] = [
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::F32,
        Self::Bool,
        Self::String,
        Self::Array,
        Self::U64,
        Self::I64,
        Self::F64,
    ];

    /// The type with this number.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// The number that stands for this type in a file.
    pub(crate) const fn number(self) -> u32 {
        self as u32
    }

    /// The name as in Rust: `u32`, `string`, `array`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::Bool => "bool",
            Self::String => "string",
            Self::Array => "array",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F64 => "f64",
        }
    }

    /// The smallest number of bytes that a value takes, and whether every value takes just that.
    const fn size(self) -> (u64, bool) {
        match self {
            Self::U8 | Self::I8 | Self::Bool => (1, true),
            Self::U16 | Self::I16 => (2, true),
            Self::U32 | Self::I32 | Self::F32 => (4, true),
            Self::U64 | Self::I64 | Self::F64 => (8, true),
            Self::String => (8, false),
            Self::Array => (12, false),
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A metadata value, borrowed from the file.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is the Rust type of its name")]
pub enum Value<'a> {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    /// Stored as one byte; any but zero is true.
    Bool(bool),
    String(&'a str),
    Array(Array<'a>),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// Why a value could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueFault {
    Read(Fault),
    UnknownType(u32),
    NestedTooDeep,
}

impl From<Fault> for ValueFault {
    fn from(fault: Fault) -> Self {
        Self::Read(fault)
    }
}

impl<'a> Value<'a> {
    /// Reads a type and a value of that type.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, ValueFault> {
        let value_type = read_type(reader)?;
        Self::read_as(reader, value_type, MAX_NESTING)
    }

    /// Reads a value; at most `nesting` arrays may stand in one another.
    fn read_as(
        reader: &mut Reader<'a>,
        value_type: ValueType,
        nesting: usize,
    ) -> Result<Self, ValueFault> {
        Ok(match value_type {
            ValueType::U8 => Self::U8(u8::from_le_bytes(reader.array()?)),
            ValueType::I8 => Self::I8(i8::from_le_bytes(reader.array()?)),
            ValueType::U16 => Self::U16(u16::from_le_bytes(reader.array()?)),
            ValueType::I16 => Self::I16(i16::from_le_bytes(reader.array()?)),
            ValueType::U32 => Self::U32(reader.u32()?),
            ValueType::I32 => Self::I32(i32::from_le_bytes(reader.array()?)),
            ValueType::F32 => Self::F32(f32::from_le_bytes(reader.array()?)),
            ValueType::Bool => Self::Bool(reader.array()? != [0]),
            ValueType::String => Self::String(reader.string()?),
            ValueType::Array => Self::Array(Array::read(reader, nesting)?),
            ValueType::U64 => Self::U64(reader.u64()?),
            ValueType::I64 => Self::I64(i64::from_le_bytes(reader.array()?)),
            ValueType::F64 => Self::F64(f64::from_le_bytes(reader.array()?)),
        })
    }

    /// Its type.
    #[must_use]
    pub const fn value_type(&self) -> ValueType {
        match self {
            Self::U8(_) => ValueType::U8,
            Self::I8(_) => ValueType::I8,
            Self::U16(_) => ValueType::U16,
            Self::I16(_) => ValueType::I16,
            Self::U32(_) => ValueType::U32,
            Self::I32(_) => ValueType::I32,
            Self::F32(_) => ValueType::F32,
            Self::Bool(_) => ValueType::Bool,
            Self::String(_) => ValueType::String,
            Self::Array(_) => ValueType::Array,
            Self::U64(_) => ValueType::U64,
            Self::I64(_) => ValueType::I64,
            Self::F64(_) => ValueType::F64,
        }
    }

    /// The number, if this is an integer of any width.
    pub(crate) fn integer(self) -> Option<i128> {
        match self {
            Self::U8(value) => Some(value.into()),
            Self::I8(value) => Some(value.into()),
            Self::U16(value) => Some(value.into()),
            Self::I16(value) => Some(value.into()),
            Self::U32(value) => Some(value.into()),
            Self::I32(value) => Some(value.into()),
            Self::U64(value) => Some(value.into()),
            Self::I64(value) => Some(value.into()),
            _ => None,
        }
    }

    /// Appends the value as it stands in a file, without its type.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Self::U8(value) => out.extend(value.to_le_bytes()),
            Self::I8(value) => out.extend(value.to_le_bytes()),
            Self::U16(value) => out.extend(value.to_le_bytes()),
            Self::I16(value) => out.extend(value.to_le_bytes()),
            Self::U32(value) => out.extend(value.to_le_bytes()),
            Self::I32(value) => out.extend(value.to_le_bytes()),
            Self::F32(value) => out.extend(value.to_le_bytes()),
            Self::Bool(value) => out.push(value.into()),
            Self::String(value) => {
                out.extend((value.len() as u64).to_le_bytes());
                out.extend(value.as_bytes());
            }
            Self::Array(array) => {
                out.extend(array.element_type.number().to_le_bytes());
                out.extend((array.len as u64).to_le_bytes());
                out.extend(array.bytes);
            }
            Self::U64(value) => out.extend(value.to_le_bytes()),
            Self::I64(value) => out.extend(value.to_le_bytes()),
            Self::F64(value) => out.extend(value.to_le_bytes()),
        }
    }
}

/// The type and the value in one line: `u32 7`, `string "llama"`, `array of 3 u32`.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.value_type();
        match self {
            Self::F32(value) => write!(f, "{name} {value}"),
            Self::F64(value) => write!(f, "{name} {value}"),
            Self::Bool(value) => write!(f, "{name} {value}"),
            Self::Array(array) => write!(f, "{name} of {} {}", array.len, array.element_type),
            Self::String(value) => {
                let shown = value.char_indices().nth(60).map_or(value.len(), |(end, _)| end);
                let dots = if shown < value.len() { "..." } else { "" };
                write!(f, "{name} {:?}{dots}", &value[..shown])
            }
            _ => write!(f, "{name} {}", self.integer().unwrap_or_default()),
        }
    }
}

/// An array of values of one type, borrowed from the file and decoded as it is iterated.
#[derive(Clone, Copy, PartialEq)]
pub struct Array<'a> {
    element_type: ValueType,
    len: usize,
    /// The elements as they stand in the file, every one checked when the array was read.
    bytes: &'a [u8],
    /// How many arrays may stand within this one.
    nesting: usize,
}

impl<'a> Array<'a> {
    fn read(reader: &mut Reader<'a>, nesting: usize) -> Result<Self, ValueFault> {
        let nesting = nesting.checked_sub(1).ok_or(ValueFault::NestedTooDeep)?;
        let element_type = read_type(reader)?;
        let len = reader.u64()?;
        let (least, fixed) = element_type.size();
        let needed = len.saturating_mul(least);
        reader.expect(needed)?;
        let mut elements = reader.clone();
        if fixed {
            reader.take(needed)?;
        } else {
            for _ in 0..len {
                Value::read_as(reader, element_type, nesting)?;
            }
        }
        let bytes = elements.take((reader.offset() - elements.offset()) as u64)?;
        // Every element takes a byte at least, so their number is no larger than a length in memory.
        Ok(Self { element_type, len: len as usize, bytes, nesting })
    }

    /// The number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The type of every element.
    #[must_use]
    pub const fn element_type(&self) -> ValueType {
        self.element_type
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let Self { element_type, len, nesting, .. } = *self;
        let mut reader = Reader::new(self.bytes);
        (0..len).map_while(move |_| Value::read_as(&mut reader, element_type, nesting).ok())
    }

    /// An array over elements that [`Value::write`] made.
    pub(crate) fn over(element_type: ValueType, len: usize, bytes: &'a [u8]) -> Self {
        Self { element_type, len, bytes, nesting: MAX_NESTING - 1 }
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

fn read_type(reader: &mut Reader<'_>) -> Result<ValueType, ValueFault> {
    let number = reader.u32()?;
    ValueType::from_number(number).ok_or(ValueFault::UnknownType(number))
}
