//! What metadata values convert to.

use crate::value::{Array, Value};

/// What [`Metadata::get`](crate::Metadata::get) can convert a value to.
///
/// - integers: from an integer of any width whose value fits; never from a float or a bool;
/// - floats: from a float or an integer of any width, rounded to nearest; not from a finite value
///   that would become infinite;
/// - `bool`, `&str`, [`Array`] and [`Value`]: from just that.
pub trait FromValue<'a>: Sized {
    /// What is accepted, for error texts.
    const EXPECTED: &'static str;

    /// The converted value, or `None` if it is none of the accepted ones.
    fn from_value(value: Value<'a>) -> Option<Self>;
}

impl<'a> FromValue<'a> for u32 {
    const EXPECTED: &'static str = "an integer that fits u32";
    fn from_value(value: Value<'a>) -> Option<Self> {
        value.integer()?.try_into().ok()
    }
}

impl<'a> FromValue<'a> for u64 {
    const EXPECTED: &'static str = "an integer that fits u64";
    fn from_value(value: Value<'a>) -> Option<Self> {
        value.integer()?.try_into().ok()
    }
}

impl<'a> FromValue<'a> for usize {
    const EXPECTED: &'static str = "an integer that fits usize";
    fn from_value(value: Value<'a>) -> Option<Self> {
        value.integer()?.try_into().ok()
    }
}

impl<'a> FromValue<'a> for f32 {
    const EXPECTED: &'static str = "a number that fits f32";
    fn from_value(value: Value<'a>) -> Option<Self> {
        match value {
            Value::F32(value) => Some(value),
            Value::F64(value) => {
                let rounded = value as Self;
                (rounded.is_finite() || !value.is_finite()).then_some(rounded)
            }
            _ => value.integer().map(|value| value as Self),
        }
    }
}

impl<'a> FromValue<'a> for f64 {
    const EXPECTED: &'static str = "a number";
    fn from_value(value: Value<'a>) -> Option<Self> {
        match value {
            Value::F32(value) => Some(value.into()),
            Value::F64(value) => Some(value),
            _ => value.integer().map(|value| value as Self),
        }
    }
}

impl<'a> FromValue<'a> for bool {
    const EXPECTED: &'static str = "a bool";
    fn from_value(value: Value<'a>) -> Option<Self> {
        if let Value::Bool(value) = value { Some(value) } else { None }
    }
}

impl<'a> FromValue<'a> for &'a str {
    const EXPECTED: &'static str = "a string";
    fn from_value(value: Value<'a>) -> Option<Self> {
        if let Value::String(value) = value { Some(value) } else { None }
    }
}

impl<'a> FromValue<'a> for Array<'a> {
    const EXPECTED: &'static str = "an array";
    fn from_value(value: Value<'a>) -> Option<Self> {
        if let Value::Array(value) = value { Some(value) } else { None }
    }
}

impl<'a> FromValue<'a> for Value<'a> {
    const EXPECTED: &'static str = "any value";
    fn from_value(value: Value<'a>) -> Option<Self> {
        Some(value)
    }
}
