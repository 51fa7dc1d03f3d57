//! What a model says about its rotary embedding.

use crate::OpError;

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
}

impl RopeConfig {
    /// Whole heads of `head_dim` elements in split halves.
    #[must_use]
    pub const fn new(head_dim: usize, base: f64) -> Self {
        Self { head_dim, rot_dim: head_dim, base, pairing: Pairing::SplitHalf }
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

    pub(super) fn check(&self) -> Result<(), OpError> {
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
        if !(self.base.is_finite() && self.base > 0.0) {
            return Err(OpError::RopeBase { base: self.base });
        }
        Ok(())
    }

    /// How far pair `pair` turns per position, in radians.
    pub(super) fn frequency(&self, pair: usize) -> f64 {
        libm::pow(self.base, -((2 * pair) as f64) / self.rot_dim as f64)
    }
}
