//! Panels: 16 neighbouring rows, block after block.

use crate::block::Block;
use bytemuck::Pod;
use half::f16;
use std::ops::Range;

/// Rows of a panel, which are the lanes of the widest vector of `i32` or `f32`.
pub(crate) const PANEL_ROWS: usize = 16;

/// The scales of one block column of a panel, row by row.
pub(crate) type PanelScales = [f16; PANEL_ROWS];

/// The quants of one block of 32 columns in all rows of a panel, kept unsigned.
pub(crate) trait PanelBlock: Pod + Send + Sync {
    /// The block that each row has in the unpacked form.
    type Block: Block + Send + Sync;

    /// What an unsigned quant is too large by.
    const OFFSET: i32;

    /// Puts a row's block into this panel block, whose bytes for that row were zero.
    fn pack(&mut self, row: usize, block: &Self::Block);

    /// The unsigned quants of columns `4 * group` to `4 * group + 3`: element `4 * row + i` is that of
    /// column `4 * group + i`.
    fn group(&self, group: usize) -> [u8; 4 * PANEL_ROWS];
}

/// All panels of a matrix of one format.
///
/// Quants and scales lie apart: a panel block is whole cache lines that way, and whoever needs the scales
/// alone reads little else.
#[derive(Clone, Copy)]
pub(crate) struct Panels<'a, P> {
    quants: &'a [P],
    scales: &'a [PanelScales],
    per_row: usize,
}

impl<'a, P> Panels<'a, P> {
    /// Panels of `per_row` blocks a row.
    pub(super) fn new(quants: &'a [P], scales: &'a [PanelScales], per_row: usize) -> Self {
        assert_eq!(quants.len(), scales.len(), "a panel block has its scales");
        Self { quants, scales, per_row }
    }

    /// The quants and scales of panel number `panel`, blocks `blocks` of its rows.
    #[inline(always)]
    pub(crate) fn panel(&self, panel: usize, blocks: Range<usize>) -> (&'a [P], &'a [PanelScales]) {
        let start = panel * self.per_row;
        let blocks = start + blocks.start..start + blocks.end;
        (&self.quants[blocks.clone()], &self.scales[blocks])
    }
}

/// The panels of a matrix, by format.
#[derive(Clone, Copy)]
pub(crate) enum AnyPanels<'a> {
    Q5_0(Panels<'a, crate::q5_0::PanelQ5_0>),
    Q8_0(Panels<'a, crate::q8_0::PanelQ8_0>),
}
