//! Where keys and values lie in memory.

use super::{CHUNK, CacheElement, CacheShape, DIM_BLOCK, PANEL};
use crate::OpError;
use crate::memory::zeroed;
use ck_pages::ZeroedSlice;
use half::f16;
use std::ops::Range;

/// Elements that may be read past the end of a row of values, so that a vector that starts within
/// it may be loaded whole. What lies there does not matter.
pub(crate) const OVER_READ: usize = 16;

/// The sizes that the element type and the shape lead to. None of the sums and products below overflows:
/// they are parts of a segment, whose size was checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) shape: CacheShape,
    /// Scales of one row; zero for elements that have none.
    pub(super) scales_per_row: usize,
    /// Elements and scales of one segment.
    segment_elements: usize,
    segment_scales: usize,
}

impl Layout {
    pub(super) fn of<E: CacheElement>(shape: CacheShape) -> Result<Self, OpError> {
        let head_dim = shape.head_dim();
        let scales_per_row = if E::IS_SCALED { head_dim / DIM_BLOCK } else { 0 };
        if E::IS_SCALED && !head_dim.is_multiple_of(DIM_BLOCK) {
            return Err(OpError::HeadDimBlock { head_dim, block: DIM_BLOCK, element: E::NAME });
        }
        let per_segment = |row: usize| {
            row.checked_mul(2 * CHUNK)
                .and_then(|head| head.checked_mul(shape.n_kv_heads()))
                .ok_or(OpError::SizeOverflow { what: "kv cache" })
        };
        let segment_elements = per_segment(head_dim)?;
        let segment_scales = per_segment(scales_per_row)?;
        Ok(Self { shape, scales_per_row, segment_elements, segment_scales })
    }

    /// Where one head's keys and values are in an array with rows of `row`: `head_dim` or `scales_per_row`.
    fn head(&self, index: usize, kv_head: usize, row: usize) -> (Range<usize>, Range<usize>) {
        let half = row * CHUNK;
        let start = (index * self.shape.n_kv_heads() + kv_head) * 2 * half;
        (start..start + half, start + half..start + 2 * half)
    }

    /// Where the elements and the scales of one segment are.
    fn segment(&self, index: usize) -> [Range<usize>; 2] {
        [self.segment_elements, self.segment_scales].map(|size| index * size..(index + 1) * size)
    }
}

/// The memory of some segments, allocated at once.
pub(super) struct Arena<E> {
    elements: ZeroedSlice<E>,
    scales: ZeroedSlice<f16>,
}

impl<E: CacheElement> Arena<E> {
    pub(super) fn try_new(layout: &Layout, segments: usize) -> Result<Self, OpError> {
        const WHAT: &str = "kv cache";
        let size = |per_segment: usize| {
            per_segment
                .checked_mul(segments)
                .and_then(|size| size.checked_add(OVER_READ))
                .ok_or(OpError::SizeOverflow { what: WHAT })
        };
        let elements = zeroed(size(layout.segment_elements)?, WHAT)?;
        let scales = zeroed(size(layout.segment_scales)?, WHAT)?;
        Ok(Self { elements, scales })
    }

    pub(super) fn head(&self, layout: &Layout, index: usize, kv_head: usize) -> HeadSegment<'_, E> {
        let head_dim = layout.shape.head_dim();
        let (keys, values) = layout.head(index, kv_head, head_dim);
        let (key_scales, value_scales) = layout.head(index, kv_head, layout.scales_per_row);
        HeadSegment {
            head_dim,
            positions: CHUNK,
            keys: &self.elements[keys],
            values: &self.elements[values.start..values.end + OVER_READ],
            key_scales: &self.scales[key_scales],
            value_scales: &self.scales[value_scales],
        }
    }

    /// Writes the key and the value of `new`, which has one position, to `position` of a head.
    pub(super) fn write(
        &mut self,
        layout: &Layout,
        (index, kv_head, position): (usize, usize, usize),
        new: HeadSegment<'_, E>,
    ) {
        let head_dim = layout.shape.head_dim();
        let (keys, values) = layout.head(index, kv_head, head_dim);
        write_column(&mut self.elements[keys], position, head_dim, new.keys);
        let values = &mut self.elements[values];
        let pieces =
            values.chunks_mut(CHUNK * DIM_BLOCK).zip(new.values[..head_dim].chunks(DIM_BLOCK));
        for (block, piece) in pieces {
            block[position * piece.len()..][..piece.len()].copy_from_slice(piece);
        }

        let scales = layout.scales_per_row;
        let (keys, values) = layout.head(index, kv_head, scales);
        write_column(&mut self.scales[keys], position, scales, new.key_scales);
        let blocks = self.scales[values].chunks_exact_mut(CHUNK);
        for (block, &scale) in blocks.zip(new.value_scales) {
            block[position] = scale;
        }
    }

    /// The elements and scales of one segment.
    pub(super) fn segment(&self, layout: &Layout, index: usize) -> (&[E], &[f16]) {
        let [elements, scales] = layout.segment(index);
        (&self.elements[elements], &self.scales[scales])
    }

    /// Overwrites one segment with the elements and scales of another.
    pub(super) fn copy_segment(
        &mut self,
        layout: &Layout,
        index: usize,
        (elements, scales): (&[E], &[f16]),
    ) {
        let [to_elements, to_scales] = layout.segment(index);
        self.elements[to_elements].copy_from_slice(elements);
        self.scales[to_scales].copy_from_slice(scales);
    }

    #[cfg(test)]
    pub(super) fn fill(&mut self, value: f16) {
        self.elements.fill(E::filler(value));
        self.scales.fill(value);
    }
}

/// Copies lane 0 of `from` to the column of `position` in the panels `to`, which have `rows` rows.
fn write_column<T: Copy>(to: &mut [T], position: usize, rows: usize, from: &[T]) {
    let panel = &mut to[position / PANEL * rows * PANEL..][..rows * PANEL];
    for (to, from) in panel.chunks_exact_mut(PANEL).zip(from.chunks_exact(PANEL)) {
        to[position % PANEL] = from[0];
    }
}

/// One KV head's part of one segment, or of a new position, which is a segment of one position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadSegment<'a, E> {
    pub(crate) head_dim: usize,
    /// How many positions the blocks of values have.
    pub(crate) positions: usize,
    /// Panels `[head_dim][PANEL]`.
    pub(crate) keys: &'a [E],
    /// Blocks `[positions][DIM_BLOCK]`, the last one perhaps narrower, and [`OVER_READ`] elements of no meaning.
    pub(crate) values: &'a [E],
    /// Panels `[scales_per_row][PANEL]`; empty for elements without scales.
    pub(crate) key_scales: &'a [f16],
    /// Blocks `[positions]`; empty for elements without scales.
    pub(crate) value_scales: &'a [f16],
}

impl<'a, E: CacheElement> HeadSegment<'a, E> {
    /// The keys of panel `panel`: one row for every dimension, one column for every position.
    #[inline(always)]
    pub(crate) fn panel(&self, panel: usize) -> &'a [[E; PANEL]] {
        let size = self.head_dim * PANEL;
        self.keys[panel * size..][..size].as_chunks().0
    }

    /// The scales of panel `panel`: one row for every [`DIM_BLOCK`] dimensions.
    #[inline(always)]
    pub(crate) fn panel_scales(&self, panel: usize) -> &'a [[f16; PANEL]] {
        let rows = if E::IS_SCALED { self.head_dim / DIM_BLOCK } else { 0 };
        self.key_scales[panel * rows * PANEL..][..rows * PANEL].as_chunks().0
    }

    /// The values of [`DIM_BLOCK`] dimensions from `block * DIM_BLOCK` on: one row for every position.
    #[inline(always)]
    pub(crate) fn value_block(&self, block: usize) -> &'a [[E; DIM_BLOCK]] {
        let size = self.positions * DIM_BLOCK;
        self.values[block * size..][..size].as_chunks().0
    }

    /// The scales of the values of block `block`: one for every position.
    #[inline(always)]
    pub(crate) fn value_scales(&self, block: usize) -> &'a [f16] {
        &self.value_scales[block * self.positions..][..self.positions]
    }

    /// The values of the dimensions beyond the last whole block, in rows of so many elements, and [`OVER_READ`]
    /// elements of no meaning.
    #[inline(always)]
    pub(crate) fn value_rest(&self) -> (&'a [E], usize) {
        let rest = self.head_dim % DIM_BLOCK;
        (&self.values[(self.head_dim - rest) * self.positions..], rest)
    }

    /// The value at `position` in pieces of up to [`DIM_BLOCK`] dimensions, each with its scale, or one.
    pub(crate) fn value_pieces(&self, position: usize) -> impl Iterator<Item = (&'a [E], f16)> {
        let Self { head_dim, positions, values, value_scales, .. } = *self;
        (0..head_dim.div_ceil(DIM_BLOCK)).map(move |block| {
            let width = DIM_BLOCK.min(head_dim - block * DIM_BLOCK);
            let start = positions * block * DIM_BLOCK + position * width;
            let scale =
                if E::IS_SCALED { value_scales[block * positions + position] } else { f16::ONE };
            (&values[start..start + width], scale)
        })
    }

    pub(super) fn read_key(&self, position: usize, out: &mut [f32]) {
        let (panel, lane) = (position / PANEL, position % PANEL);
        let scales = self.panel_scales(panel);
        for (d, (out, column)) in out.iter_mut().zip(self.panel(panel)).enumerate() {
            let scale = if E::IS_SCALED { scales[d / DIM_BLOCK][lane] } else { f16::ONE };
            *out = column[lane].widen(scale);
        }
    }

    /// Writes the key at `position`, as it is saved.
    pub(super) fn put_key(&self, position: usize, bytes: &mut Vec<u8>) {
        let (panel, lane) = (position / PANEL, position % PANEL);
        let scales = self.panel_scales(panel);
        for (block, columns) in self.panel(panel).chunks(DIM_BLOCK).enumerate() {
            let mut piece = [E::zeroed(); DIM_BLOCK];
            for (element, column) in piece.iter_mut().zip(columns) {
                *element = column[lane];
            }
            let scale = if E::IS_SCALED { scales[block][lane] } else { f16::ONE };
            E::put(&piece[..columns.len()], scale, bytes);
        }
    }

    /// Writes the value at `position`, as it is saved.
    pub(super) fn put_value(&self, position: usize, bytes: &mut Vec<u8>) {
        for (piece, scale) in self.value_pieces(position) {
            E::put(piece, scale, bytes);
        }
    }

    pub(super) fn read_value(&self, position: usize, out: &mut [f32]) {
        for (out, (piece, scale)) in out.chunks_mut(DIM_BLOCK).zip(self.value_pieces(position)) {
            for (out, element) in out.iter_mut().zip(piece) {
                *out = element.widen(scale);
            }
        }
    }
}
