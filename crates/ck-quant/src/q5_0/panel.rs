//! The layout of a Q5_0 block of 16 rows.

use crate::BlockQ5_0;
use crate::packed::PanelBlock;

/// The stored quants of one block of 32 columns in 16 neighbouring rows: 320 bytes, five cache lines.
///
/// The columns form eight groups of four. Within each line, byte `4 * row + i` belongs to column `i` of a
/// group, so that one instruction of the kind "four bytes times four bytes into a lane" serves a group
/// in all 16 rows. A stored quant has five bits:
///
/// - group `p` of the first four: bits 0 to 4 of `lines[p]`;
/// - group `4 + p`: its upper three bits are bits 5 to 7 of `lines[p]`, its lower two are bits `2 * p` and
///   `2 * p + 1` of `pairs`.
///
/// Nibbles with a plane of fifth bits would take as many bytes. This way the first four groups need one AND
/// each, and the others come out as eight times the quant with one shift, one select and one AND.
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub(crate) struct PanelQ5_0 {
    /// Groups 0 to 3 whole, with the upper bits of groups 4 to 7.
    pub(crate) lines: [[u8; 64]; 4],
    /// The lower two bits of groups 4 to 7.
    pub(crate) pairs: [u8; 64],
}

const _: () = assert!(size_of::<PanelQ5_0>() == 16 * (size_of::<BlockQ5_0>() - 2));

impl PanelBlock for PanelQ5_0 {
    type Block = BlockQ5_0;

    const OFFSET: i32 = BlockQ5_0::OFFSET;

    fn pack(&mut self, row: usize, block: &BlockQ5_0) {
        let stored = block.stored();
        for p in 0..4 {
            for i in 0..4 {
                let whole = stored[4 * p + i];
                let split = stored[16 + 4 * p + i];
                self.lines[p][4 * row + i] = whole | (split >> 2) << 5;
                self.pairs[4 * row + i] |= (split & 3) << (2 * p);
            }
        }
    }

    #[inline(always)]
    fn group(&self, group: usize) -> [u8; 64] {
        let line = &self.lines[group % 4];
        if group < 4 {
            line.map(|byte| byte & 31)
        } else {
            let shift = 2 * (group - 4);
            std::array::from_fn(|at| (line[at] >> 5) << 2 | self.pairs[at] >> shift & 3)
        }
    }
}
