//! The layout of a Q8_0 block of 16 rows.

use crate::BlockQ8_0;
use crate::packed::PanelBlock;

/// The quants of one block of 32 columns in 16 neighbouring rows: 512 bytes, eight cache lines.
///
/// Line `g` holds columns `4 * g` to `4 * g + 3`: byte `4 * row + i` is column `4 * g + i` of that row, with
/// the sign bit flipped, which makes the quant unsigned with an offset of 128.
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub(crate) struct PanelQ8_0 {
    pub(crate) lines: [[u8; 64]; 8],
}

const _: () = assert!(size_of::<PanelQ8_0>() == 16 * (size_of::<BlockQ8_0>() - 2));

impl PanelBlock for PanelQ8_0 {
    type Block = BlockQ8_0;

    const OFFSET: i32 = 128;

    fn pack(&mut self, row: usize, block: &BlockQ8_0) {
        let (quants, _) = block.quants().as_chunks::<4>();
        for (line, quants) in self.lines.iter_mut().zip(quants) {
            let flipped = quants.map(|quant| quant as u8 ^ 0x80);
            line[4 * row..4 * row + 4].copy_from_slice(&flipped);
        }
    }

    #[inline(always)]
    fn group(&self, group: usize) -> [u8; 64] {
        self.lines[group]
    }
}
