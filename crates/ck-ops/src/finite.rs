//! Refusing NaN and infinity, by name and index.

use crate::OpError;
use ck_isa::Isa;

/// [`OpError::NonFinite`] for the first value of `values` that is not finite.
pub(crate) fn check_finite(_isa: Isa, what: &'static str, values: &[f32]) -> Result<(), OpError> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(index) => Err(OpError::NonFinite { what, index, value: values[index] }),
    }
}

/// [`OpError::Length`] unless `values` has `expected` values.
pub(crate) fn check_length(
    what: &'static str,
    expected: usize,
    found: usize,
) -> Result<(), OpError> {
    if expected == found { Ok(()) } else { Err(OpError::Length { what, expected, found }) }
}
