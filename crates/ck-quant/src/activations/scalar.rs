//! Quantizing activations in plain Rust.

use super::{Target, correction};
use crate::{BLOCK_LEN, q8_0};

pub(super) fn quantize(values: &[[f32; BLOCK_LEN]], target: Target<'_>) -> bool {
    if q8_0::check(values.as_flattened()).is_err() {
        return false;
    }
    let target = target.scales.iter_mut().zip(target.quants).zip(target.corrections);
    for (values, ((scale, quants), sum)) in values.iter().zip(target) {
        let block = q8_0::quantize_block(values);
        *scale = block.scale().to_f32();
        *quants = *block.quants();
        *sum = correction(quants);
    }
    true
}
