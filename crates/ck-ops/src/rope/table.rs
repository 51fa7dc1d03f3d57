//! The sines and cosines of a range of positions.

use super::config::RopeConfig;
use super::rotate::rotate;
use crate::OpError;
use ck_isa::Isa;

/// Sines and cosines for positions `0..positions()`, and the rotation by them.
///
/// The angles, sines and cosines, and all that a [scaling](crate::RopeScaling) does to them, are computed in `f64` by
/// a pure-Rust library and rounded to `f32` once, so the table has the same bits on every machine.
///
/// ```
/// # use ck_isa::Isa;
/// # use ck_ops::{RopeConfig, RopeTable};
/// let table = RopeTable::new(RopeConfig::new(4, 10_000.0), 16)?;
/// let mut heads = [1.0, 0.0, 0.0, 0.0, /* second head */ 0.0, 1.0, 0.0, 0.0];
/// table.apply(Isa::detect(), 1, &mut heads)?;
/// assert_eq!(heads[0], 1f32.cos()); // paired with element 2
/// assert_eq!(heads[2], 1f32.sin());
/// # Ok::<(), ck_ops::OpError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RopeTable {
    config: RopeConfig,
    /// How far each pair turns per position.
    pub(super) frequencies: Vec<f64>,
    /// What cosines and sines are multiplied by.
    magnitude: f64,
    /// Per position `rot_dim / 2` cosines, then as many sines.
    pub(super) rows: Vec<f32>,
    positions: usize,
}

impl RopeTable {
    /// The table for positions `0..positions`.
    ///
    /// # Errors
    ///
    /// Those of [`RopeConfig::check`]; [`OpError::SizeOverflow`] and [`OpError::OutOfMemory`].
    pub fn new(config: RopeConfig, positions: usize) -> Result<Self, OpError> {
        let (frequencies, magnitude) = (config.frequencies()?, config.magnitude());
        let mut table = Self { config, frequencies, magnitude, rows: Vec::new(), positions: 0 };
        table.reserve(positions)?;
        Ok(table)
    }

    /// What the table was made from.
    #[must_use]
    pub fn config(&self) -> &RopeConfig {
        &self.config
    }

    /// The elements of one head.
    #[must_use]
    pub fn head_dim(&self) -> usize {
        self.config.head_dim
    }

    /// How many positions the table has.
    #[must_use]
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// Extends the table to at least `positions` positions. What it has keeps its bits.
    ///
    /// # Errors
    ///
    /// [`OpError::SizeOverflow`] and [`OpError::OutOfMemory`]; the table is then as it was.
    pub fn reserve(&mut self, positions: usize) -> Result<(), OpError> {
        const WHAT: &str = "rope table";
        if positions <= self.positions {
            return Ok(());
        }
        let overflow = OpError::SizeOverflow { what: WHAT };
        let values = positions.checked_mul(self.config.rot_dim).ok_or(overflow)?;
        let bytes = values.checked_mul(size_of::<f32>()).ok_or(overflow)?;
        self.rows
            .try_reserve_exact(values - self.rows.len())
            .map_err(|_| OpError::OutOfMemory { what: WHAT, bytes })?;
        for position in self.positions..positions {
            let Self { frequencies, magnitude, rows, .. } = self;
            let angle = |frequency: &f64| position as f64 * frequency;
            rows.extend(frequencies.iter().map(|f| (libm::cos(angle(f)) * *magnitude) as f32));
            rows.extend(frequencies.iter().map(|f| (libm::sin(angle(f)) * *magnitude) as f32));
        }
        self.positions = positions;
        Ok(())
    }

    /// Rotates each of the heads in `heads` to `position`, in place.
    ///
    /// `heads` is any number of heads of `head_dim` elements, one after the other. A pair becomes
    /// `x0 cos - x1 sin, x0 sin + x1 cos`, computed as `fma(-x1, sin, x0 * cos)` and `fma(x0, sin, x1 * cos)`.
    /// Position 0 changes no bit, unless the rotation has a magnitude other than 1.
    ///
    /// # Errors
    ///
    /// [`OpError::PositionOutsideTable`] and [`OpError::PartialHead`]; `heads` is then as it was.
    pub fn apply(&self, isa: Isa, position: usize, heads: &mut [f32]) -> Result<(), OpError> {
        let RopeConfig { head_dim, rot_dim, pairing, .. } = self.config;
        if position >= self.positions {
            return Err(OpError::PositionOutsideTable { position, positions: self.positions });
        }
        if !heads.len().is_multiple_of(head_dim) {
            return Err(OpError::PartialHead { what: "rope heads", head_dim, found: heads.len() });
        }
        if position == 0 && self.magnitude == 1.0 {
            // Not merely a short cut: adding x1 * 0 would turn a -0 into +0.
            return Ok(());
        }
        let (cos, sin) = self.rows[position * rot_dim..][..rot_dim].split_at(rot_dim / 2);
        for head in heads.chunks_exact_mut(head_dim) {
            rotate(isa, pairing, cos, sin, &mut head[..rot_dim]);
        }
        Ok(())
    }
}
