//! Rows of block bytes that no quantizer would write but a file may hold.

use super::Rng;
use crate::oracle::{BLOCK, Block, Format};
use half::f16;

/// Which scales a row gets. All are finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scales {
    /// Exactly 1.
    One,
    /// 1/2, 1 or 2, of both signs: block sums are multiples of 1/4 when both sides have them, so that a row's `f32`
    /// sum is exact as long as [`crate::oracle::Sum::is_exact_in_f32`] holds with that quantum.
    PowersOfTwo,
    /// As trained weights have them: 0.001 to 0.1, of both signs.
    Weights,
    /// Any finite bits: subnormal, zero and largest ones too.
    AnyFinite,
}

impl Scales {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::One, Self::PowersOfTwo, Self::Weights, Self::AnyFinite];

    fn scale(self, rng: &mut Rng) -> f16 {
        match self {
            Self::One => f16::ONE,
            Self::PowersOfTwo => f16::from_f32(rng.sign() * rng.choose(&[0.5, 1.0, 2.0])),
            Self::Weights => f16::from_f32(rng.sign() * rng.uniform(0.001, 0.1)),
            Self::AnyFinite => loop {
                let extremes = [0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF];
                let any = rng.next_u64() as u16;
                let bits = if rng.below(4) == 0 { rng.choose(&extremes) } else { any };
                let scale = f16::from_bits(bits);
                if scale.is_finite() {
                    break scale;
                }
            },
        }
    }
}

/// Which quants a row gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quants {
    /// Every value the bytes can hold, -128 included, equally likely.
    Any,
    /// The smallest and the largest value, at random.
    Extremes,
    /// The smallest value everywhere.
    Smallest,
    /// The largest value everywhere.
    Largest,
    /// The smallest and the largest value in turn.
    Alternating,
    /// One small random value per element, -2 to 2: block sums stay small, so that exact `f32` sums can be long.
    Small,
}

impl Quants {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Any, Self::Extremes, Self::Smallest, Self::Largest, Self::Alternating, Self::Small];

    fn quant(self, rng: &mut Rng, (low, high): (i8, i8), index: usize) -> i8 {
        match self {
            Self::Any => (i32::from(low) + rng.below(1 + high.abs_diff(low) as usize) as i32) as i8,
            Self::Extremes => rng.choose(&[low, high]),
            Self::Smallest => low,
            Self::Largest => high,
            Self::Alternating => [low, high][index % 2],
            Self::Small => rng.below(5) as i8 - 2,
        }
    }
}

/// The bytes of a row of `blocks` blocks.
///
/// ```
/// use ck_testing::generate::{Quants, Rng, Scales, random_row};
/// use ck_testing::oracle::Format;
/// let row = random_row(Format::Q5_0, &mut Rng::new(1), 3, Scales::Weights, Quants::Any);
/// assert_eq!(row.len(), 66);
/// ```
#[must_use]
pub fn random_row(
    format: Format,
    rng: &mut Rng,
    blocks: usize,
    scales: Scales,
    quants: Quants,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..blocks {
        let mut block = Block { scale: scales.scale(rng), quants: [0; BLOCK] };
        for (index, quant) in block.quants.iter_mut().enumerate() {
            *quant = quants.quant(rng, format.quant_range(), index);
        }
        bytes.extend(block.encode(format));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::{Quants, Rng, Scales, random_row};
    use crate::oracle::{Format, decode_row};

    #[test]
    fn any_quants_cover_the_whole_range_of_each_format() {
        let mut rng = Rng::new(5);
        for format in Format::ALL {
            let (low, high) = format.quant_range();
            let row = random_row(format, &mut rng, 400, Scales::One, Quants::Any);
            let mut seen: Vec<i8> =
                decode_row(format, &row).iter().flat_map(|block| block.quants).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen, (low..=high).collect::<Vec<i8>>(), "{format}");
        }
    }

    #[test]
    fn scales_are_finite_and_differ() {
        let mut rng = Rng::new(6);
        for scales in [Scales::PowersOfTwo, Scales::Weights, Scales::AnyFinite] {
            let row = random_row(Format::Q8_0, &mut rng, 300, scales, Quants::Small);
            let blocks = decode_row(Format::Q8_0, &row);
            assert!(blocks.iter().all(|block| block.scale.is_finite()), "{scales:?}");
            assert!(blocks.iter().any(|block| block.scale != blocks[0].scale), "{scales:?}");
        }
    }
}
