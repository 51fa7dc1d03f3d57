//! What a model says about its rotary embedding.

use super::RopeScaling;
use crate::OpError;
use crate::finite::check_length;

/// Which two elements of a head are rotated together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pairing {
    /// Element `i` with element `i + rot_dim / 2`: Qwen2 and most others.
    #[default]
    SplitHalf,
    /// Element `2 i` with element `2 i + 1`: Llama files in GGUF.
    Interleaved,
}

/// The rotary embedding of a model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RopeConfig {
    /// Elements of a head.
    pub head_dim: usize,
    /// How many of them are rotated, from the first on; the others pass through.
    pub rot_dim: usize,
    /// The frequency base: pair `i` turns by `base^(-2 i / rot_dim)` per position.
    pub base: f64,
    /// Which elements make a pair.
    pub pairing: Pairing,
    /// A number for every pair that its frequency is divided by, before any scaling: `rope_freqs.weight` of GGUF
    /// files. `rot_dim / 2` of them.
    pub frequency_factors: Option<Vec<f32>>,
    /// What else becomes of the frequencies.
    pub scaling: RopeScaling,
    /// What cosines and sines are multiplied by, beside the scaling's own magnitude: queries and keys become
    /// so much longer.
    pub attn_factor: f64,
}

impl RopeConfig {
    /// Whole heads of `head_dim` elements in split halves, without scaling.
    #[must_use]
    pub const fn new(head_dim: usize, base: f64) -> Self {
        Self {
            head_dim,
            rot_dim: head_dim,
            base,
            pairing: Pairing::SplitHalf,
            frequency_factors: None,
            scaling: RopeScaling::None,
            attn_factor: 1.0,
        }
    }

    /// Rotates only the first `rot_dim` elements.
    #[must_use]
    pub const fn with_rot_dim(mut self, rot_dim: usize) -> Self {
        self.rot_dim = rot_dim;
        self
    }

    /// Rotates the pairs that `pairing` names.
    #[must_use]
    pub const fn with_pairing(mut self, pairing: Pairing) -> Self {
        self.pairing = pairing;
        self
    }

    /// Divides the frequency of every pair by a number of its own.
    #[must_use]
    pub fn with_frequency_factors(mut self, factors: impl Into<Vec<f32>>) -> Self {
        self.frequency_factors = Some(factors.into());
        self
    }

    /// Scales the frequencies.
    #[must_use]
    pub const fn with_scaling(mut self, scaling: RopeScaling) -> Self {
        self.scaling = scaling;
        self
    }

    /// Multiplies cosines and sines by `attn_factor`.
    #[must_use]
    pub const fn with_attn_factor(mut self, attn_factor: f64) -> Self {
        self.attn_factor = attn_factor;
        self
    }

    /// Checks that a [`RopeTable`](super::RopeTable) can be made of this.
    ///
    /// # Errors
    ///
    /// [`OpError::Zero`], [`OpError::Odd`] and [`OpError::RotDim`] for widths; [`OpError::RopeBase`],
    /// [`OpError::RopeScaling`], [`OpError::Length`] and [`OpError::RopeFactor`] for what frequencies are made of,
    /// [`OpError::RopeFrequency`] for what becomes of them; [`OpError::RopeMagnitude`]; [`OpError::SizeOverflow`] and
    /// [`OpError::OutOfMemory`] for more pairs than memory holds.
    pub fn check(&self) -> Result<(), OpError> {
        self.frequencies().map(drop)
    }

    /// How far each pair turns per position, in radians, once everything about the rotation is checked.
    pub(super) fn frequencies(&self) -> Result<Vec<f64>, OpError> {
        self.check_widths()?;
        if !(self.base.is_finite() && self.base > 0.0) {
            return Err(OpError::RopeBase { base: self.base });
        }
        self.scaling.check(self.base)?;
        self.check_factors()?;
        let magnitude = self.magnitude();
        // Below the smallest normal f32 the rotation would be one of its rounding.
        if !(f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&magnitude) {
            return Err(OpError::RopeMagnitude { magnitude });
        }
        let frequencies = self.unchecked_frequencies()?;
        // No position may turn a pair by an angle beyond f64.
        let too_fast = |f: &f64| !f.is_finite() || (f * usize::MAX as f64).is_infinite();
        match frequencies.iter().position(too_fast) {
            Some(pair) => Err(OpError::RopeFrequency { pair, frequency: frequencies[pair] }),
            None => Ok(frequencies),
        }
    }

    fn check_widths(&self) -> Result<(), OpError> {
        for (what, found) in [("head_dim", self.head_dim), ("rot_dim", self.rot_dim)] {
            if found == 0 {
                return Err(OpError::Zero { what });
            }
            if !found.is_multiple_of(2) {
                return Err(OpError::Odd { what, found });
            }
        }
        if self.rot_dim > self.head_dim {
            return Err(OpError::RotDim { rot_dim: self.rot_dim, head_dim: self.head_dim });
        }
        Ok(())
    }

    fn check_factors(&self) -> Result<(), OpError> {
        let Some(factors) = &self.frequency_factors else { return Ok(()) };
        check_length("rope frequency factors", self.rot_dim / 2, factors.len())?;
        match factors.iter().position(|factor| !(factor.is_finite() && *factor > 0.0)) {
            Some(pair) => Err(OpError::RopeFactor { pair, factor: factors[pair] }),
            None => Ok(()),
        }
    }

    /// Frequencies that may be beyond `f64`.
    fn unchecked_frequencies(&self) -> Result<Vec<f64>, OpError> {
        const WHAT: &str = "rope frequencies";
        let pairs = self.rot_dim / 2;
        let bytes = pairs.checked_mul(size_of::<f64>());
        let bytes = bytes.ok_or(OpError::SizeOverflow { what: WHAT })?;
        let mut frequencies = Vec::new();
        frequencies
            .try_reserve_exact(pairs)
            .map_err(|_| OpError::OutOfMemory { what: WHAT, bytes })?;
        let frequency =
            |pair: usize| libm::pow(self.base, -((2 * pair) as f64) / self.rot_dim as f64);
        frequencies.extend((0..pairs).map(frequency));
        for (frequency, &factor) in
            frequencies.iter_mut().zip(self.frequency_factors.iter().flatten())
        {
            *frequency /= f64::from(factor);
        }
        self.scaling.scale(&mut frequencies, self.base);
        Ok(frequencies)
    }

    /// What cosines and sines are multiplied by.
    pub(super) fn magnitude(&self) -> f64 {
        self.attn_factor * self.scaling.magnitude()
    }
}
