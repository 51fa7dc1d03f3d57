//! The metadata: typed values by key.

use crate::convert::FromValue;
use crate::directory::Directory;
use crate::error::{Error, Place};
use crate::reader::Reader;
use crate::value::{MAX_NESTING, Value, ValueFault};

/// The fewest bytes of an entry: a key of one byte, with its length, a type and a value of one byte.
const MIN_ENTRY: u64 = 8 + 1 + 4 + 1;

/// The key-value pairs of a file, borrowed from its bytes.
#[derive(Clone, Debug)]
pub struct Metadata<'a> {
    entries: Directory<'a, Value<'a>>,
}

impl<'a> Metadata<'a> {
    /// Reads `count` entries.
    pub(crate) fn read(reader: &mut Reader<'a>, count: u64) -> Result<Self, Error> {
        let announced = reader.expect(count.saturating_mul(MIN_ENTRY));
        announced.map_err(|fault| fault.at(Place::Metadata { count }))?;
        let mut entries = Vec::new();
        for index in 0..count {
            let key = reader.name().map_err(|fault| fault.at(Place::Entry { index }))?;
            let value = Value::read(reader).map_err(|fault| at_key(fault, key))?;
            entries.push((key, value));
        }
        let duplicate = |key: &str| Error::Duplicate { place: Place::Key(key.to_owned()) };
        Ok(Self { entries: Directory::new(entries).map_err(duplicate)? })
    }

    /// The value of `key`, if the file has it, converted as [`FromValue`] describes.
    ///
    /// # Errors
    ///
    /// [`Error::BadValue`] if the value is none that converts.
    pub fn get<T: FromValue<'a>>(&self, key: &str) -> Result<Option<T>, Error> {
        let Some(&value) = self.entries.get(key) else { return Ok(None) };
        match T::from_value(value) {
            Some(converted) => Ok(Some(converted)),
            None => Err(Error::BadValue {
                key: key.to_owned(),
                expected: T::EXPECTED.to_owned(),
                found: value.to_string(),
            }),
        }
    }

    /// The value of `key`, converted as [`FromValue`] describes.
    ///
    /// # Errors
    ///
    /// [`Error::MissingKey`], or [`Error::BadValue`] if the value is none that converts.
    pub fn require<T: FromValue<'a>>(&self, key: &str) -> Result<T, Error> {
        let missing = || Error::MissingKey { key: key.to_owned(), expected: T::EXPECTED };
        self.get(key)?.ok_or_else(missing)
    }

    /// Keys and values in the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'a str, Value<'a>)> {
        self.entries.iter().copied()
    }
}

/// The error for a value of `key` that could not be read.
fn at_key(fault: ValueFault, key: &str) -> Error {
    let key = key.to_owned();
    match fault {
        ValueFault::Read(fault) => fault.at(Place::Key(key)),
        ValueFault::UnknownType(number) => Error::UnknownValueType { key, number },
        ValueFault::NestedTooDeep => Error::NestedTooDeep { key, limit: MAX_NESTING },
    }
}
