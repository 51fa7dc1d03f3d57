//! Rounding to `f16` as plain code: the definition.

use half::f16;

/// Each value to the nearest `f16`, ties to even.
pub(super) fn round(row: &[f32], elements: &mut [f16]) {
    for (element, &value) in elements.iter_mut().zip(row) {
        *element = f16::from_f32(value);
    }
}
