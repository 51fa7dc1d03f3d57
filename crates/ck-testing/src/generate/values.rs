//! Kinds of `f32` rows.

use super::Rng;

/// The largest activation that Q8_0 can hold: 127 times the largest `f16`.
const Q8_0_MAX: f32 = 127.0 * 65504.0;

/// A kind of row. All values are finite; [`Values::NON_FINITE`] is what to put into one to have it refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Values {
    /// Evenly between -1 and 1.
    Uniform,
    /// Nearly standard normal.
    Normal,
    /// Zeros of both signs.
    Zeros,
    /// 1, -1, 1 and so on: sums cancel, one lost element shows.
    AlternatingSigns,
    /// Normal, with one element in 64 a thousand times as large, as hidden states have them.
    HugeActivations,
    /// Subnormal numbers of both signs, the smallest and the largest among them.
    Subnormal,
    /// Magnitudes from 2^-40 to 2^19, evenly in their exponent.
    ManyMagnitudes,
    /// The ends of what quantization accepts: 127 * 65504 and its neighbours, `f16`'s ends, zeros.
    QuantizableExtremes,
    /// The ends of `f32`: the largest, the smallest normal and subnormal ones, zeros. Most operations refuse them.
    FloatExtremes,
}

impl Values {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Uniform,
        Self::Normal,
        Self::Zeros,
        Self::AlternatingSigns,
        Self::HugeActivations,
        Self::Subnormal,
        Self::ManyMagnitudes,
        Self::QuantizableExtremes,
        Self::FloatExtremes,
    ];

    /// The kinds that quantization accepts.
    pub const QUANTIZABLE: [Self; 8] = [
        Self::Uniform,
        Self::Normal,
        Self::Zeros,
        Self::AlternatingSigns,
        Self::HugeActivations,
        Self::Subnormal,
        Self::ManyMagnitudes,
        Self::QuantizableExtremes,
    ];

    /// What must be refused wherever it stands: NaN of both signs and kinds, and the infinities.
    pub const NON_FINITE: [f32; 5] = [
        f32::NAN,
        f32::from_bits(0xFFC0_0000),
        f32::from_bits(0x7F80_0001),
        f32::INFINITY,
        f32::NEG_INFINITY,
    ];

    /// A row of this kind.
    #[must_use]
    pub fn row(self, rng: &mut Rng, len: usize) -> Vec<f32> {
        (0..len).map(|index| self.value(rng, index)).collect()
    }

    fn value(self, rng: &mut Rng, index: usize) -> f32 {
        match self {
            Self::Uniform => rng.uniform(-1.0, 1.0),
            Self::Normal => rng.normal(),
            Self::Zeros => 0.0 * rng.sign(),
            Self::AlternatingSigns => [1.0, -1.0][index % 2],
            Self::HugeActivations => rng.normal() * if rng.below(64) == 0 { 1000.0 } else { 1.0 },
            Self::Subnormal => {
                let magnitude = match rng.below(4) {
                    0 => 1,
                    1 => 0x007F_FFFF,
                    _ => 1 + rng.below(0x007F_FFFF) as u32,
                };
                f32::from_bits(magnitude) * rng.sign()
            }
            Self::ManyMagnitudes => {
                let exponent = rng.below(59) as i32 - 40;
                rng.sign() * (1.0 + rng.unit()) * 2f32.powi(exponent)
            }
            Self::QuantizableExtremes => {
                let magnitudes =
                    [Q8_0_MAX, Q8_0_MAX.next_down(), 65504.0, 2f32.powi(-24), 2f32.powi(-25), 0.0];
                rng.sign() * rng.choose(&magnitudes)
            }
            Self::FloatExtremes => {
                let magnitudes = [f32::MAX, f32::MIN_POSITIVE, f32::from_bits(1), 1.0, 0.0];
                rng.sign() * rng.choose(&magnitudes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Rng, Values};
    use crate::oracle::{Format, quantize_row};

    #[test]
    fn every_quantizable_kind_is_accepted_by_both_formats_but_for_the_extremes_of_q8_0() {
        let mut rng = Rng::new(3);
        for kind in Values::QUANTIZABLE {
            let row = kind.row(&mut rng, 640);
            assert!(row.iter().all(|x| x.is_finite()), "{kind:?}");
            assert!(quantize_row(Format::Q8_0, &row).is_ok(), "{kind:?}");
            // Q5_0 divides the largest value by 16 instead of 127, so its range ends earlier.
            let q5_0 = quantize_row(Format::Q5_0, &row).is_ok();
            assert_eq!(q5_0, kind != Values::QuantizableExtremes, "{kind:?}");
        }
        let row = Values::FloatExtremes.row(&mut rng, 640);
        assert!(quantize_row(Format::Q8_0, &row).is_err());
    }

    #[test]
    fn subnormal_rows_are_subnormal_and_zeros_have_both_signs() {
        let mut rng = Rng::new(4);
        assert!(Values::Subnormal.row(&mut rng, 1000).iter().all(|x| x.is_subnormal()));
        let zeros = Values::Zeros.row(&mut rng, 100);
        assert!(zeros.iter().all(|&x| x == 0.0));
        assert!(zeros.iter().any(|x| x.is_sign_negative()));
        assert!(zeros.iter().any(|x| x.is_sign_positive()));
    }
}
