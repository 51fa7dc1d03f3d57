//! Refusing NaN and infinity by name and index, and wrong lengths.

use crate::OpError;

/// [`OpError::NonFinite`] for the first value of `values` that is not finite.
pub(crate) fn check_finite(what: &'static str, values: &[f32]) -> Result<(), OpError> {
    match position_from(f32::INFINITY, values) {
        None => Ok(()),
        Some(index) => Err(OpError::NonFinite { what, index, value: values[index] }),
    }
}

/// [`OpError::NonFinite`] as [`check_finite`], and [`OpError::BeyondRange`] for the first magnitude of `overflow` or more, which
/// elements of the type that is called `element` cannot hold.
pub(crate) fn check_range(
    what: &'static str,
    values: &[f32],
    overflow: f32,
    element: &'static str,
) -> Result<(), OpError> {
    match position_from(overflow, values) {
        None => Ok(()),
        Some(index) => {
            check_finite(what, values)?;
            Err(OpError::BeyondRange { what, index, value: values[index], element })
        }
    }
}

/// The first value that is NaN, or whose magnitude is `limit` or more.
///
/// The patterns of magnitudes are ordered as the magnitudes are, with NaN on top. One pass without an exit
/// first, which compilers turn into vector code everywhere: there is hardly ever something to find.
pub(crate) fn position_from(limit: f32, values: &[f32]) -> Option<usize> {
    let beyond = |x: &f32| x.abs().to_bits() >= limit.to_bits();
    if !values.iter().fold(false, |found, x| found | beyond(x)) {
        return None;
    }
    values.iter().position(beyond)
}

/// [`OpError::Length`] unless `values` has `expected` values.
pub(crate) fn check_length(
    what: &'static str,
    expected: usize,
    found: usize,
) -> Result<(), OpError> {
    if expected == found { Ok(()) } else { Err(OpError::Length { what, expected, found }) }
}
