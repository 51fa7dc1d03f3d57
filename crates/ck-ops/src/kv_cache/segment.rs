//! Where keys and values lie in memory.

use super::{CHUNK, CacheElement, CacheShape, PANEL};
use crate::OpError;
use crate::aligned::AlignedZeroed;
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
        let scales_per_row = match E::SCALE_BLOCK {
            None => 0,
            Some(block) if head_dim.is_multiple_of(block) => head_dim / block,
            Some(block) => {
                return Err(OpError::HeadDimBlock { head_dim, block, element: E::NAME });
            }
        };
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
}

/// The memory of some segments, allocated at once.
pub(super) struct Block<E> {
    elements: AlignedZeroed<E>,
    scales: AlignedZeroed<f16>,
}

impl<E: CacheElement> Block<E> {
    pub(super) fn try_new(layout: &Layout, segments: usize) -> Result<Self, OpError> {
        const WHAT: &str = "kv cache";
        let size = |per_segment: usize| {
            per_segment
                .checked_mul(segments)
                .and_then(|size| size.checked_add(OVER_READ))
                .ok_or(OpError::SizeOverflow { what: WHAT })
        };
        let elements = AlignedZeroed::try_new(size(layout.segment_elements)?, WHAT)?;
        let scales = AlignedZeroed::try_new(size(layout.segment_scales)?, WHAT)?;
        Ok(Self { elements, scales })
    }

    pub(super) fn head(&self, layout: &Layout, index: usize, kv_head: usize) -> HeadSegment<'_, E> {
        let head_dim = layout.shape.head_dim();
        let (keys, values) = layout.head(index, kv_head, head_dim);
        let (key_scales, value_scales) = layout.head(index, kv_head, layout.scales_per_row);
        HeadSegment {
            head_dim,
            keys: &self.elements[keys],
            values: &self.elements[values.start..values.end + OVER_READ],
            key_scales: &self.scales[key_scales],
            value_scales: &self.scales[value_scales],
        }
    }

    #[cfg(test)]
    pub(super) fn fill(&mut self, value: f16) {
        self.elements.fill(E::filler(value));
        self.scales.fill(value);
    }

    /// Writes one position's key, given as a panel of which lane 0 counts, and value.
    pub(super) fn write(
        &mut self,
        layout: &Layout,
        (index, kv_head, position): (usize, usize, usize),
        new: HeadSegment<'_, E>,
    ) {
        let head_dim = layout.shape.head_dim();
        let (keys, values) = layout.head(index, kv_head, head_dim);
        write_column(&mut self.elements[keys], position, head_dim, new.keys);
        let row = values.start + position * head_dim;
        self.elements[row..][..head_dim].copy_from_slice(&new.values[..head_dim]);

        let scales = layout.scales_per_row;
        let (keys, values) = layout.head(index, kv_head, scales);
        write_column(&mut self.scales[keys], position, scales, new.key_scales);
        let row = values.start + position * scales;
        self.scales[row..][..scales].copy_from_slice(&new.value_scales[..scales]);
    }
}

/// Copies lane 0 of `from` to the column of `position` in the panels `to`, which have `rows` rows.
fn write_column<T: Copy>(to: &mut [T], position: usize, rows: usize, from: &[T]) {
    let panel = &mut to[position / PANEL * rows * PANEL..][..rows * PANEL];
    for (to, from) in panel.chunks_exact_mut(PANEL).zip(from.chunks_exact(PANEL)) {
        to[position % PANEL] = from[0];
    }
}

/// One KV head's part of one segment, or of a new position (a single panel and row).
#[derive(Clone, Copy)]
pub(crate) struct HeadSegment<'a, E> {
    pub(crate) head_dim: usize,
    /// Panels `[head_dim][16]`.
    pub(crate) keys: &'a [E],
    /// Rows `[head_dim]`, and [`OVER_READ`] elements of no meaning.
    pub(crate) values: &'a [E],
    /// Panels `[blocks][16]`; empty for elements without scales.
    pub(crate) key_scales: &'a [f16],
    /// Rows `[blocks]`; empty for elements without scales.
    pub(crate) value_scales: &'a [f16],
}

impl<'a, E: CacheElement> HeadSegment<'a, E> {
    /// The elements of panel `panel`, `[head_dim][16]`.
    #[inline(always)]
    pub(crate) fn panel(&self, panel: usize) -> &'a [[E; PANEL]] {
        let size = self.head_dim * PANEL;
        self.keys[panel * size..][..size].as_chunks().0
    }

    /// The scales of panel `panel`, `[blocks][16]`.
    #[inline(always)]
    pub(crate) fn panel_scales(&self, panel: usize) -> &'a [[f16; PANEL]] {
        let size = self.scales_per_row() * PANEL;
        self.key_scales[panel * size..][..size].as_chunks().0
    }

    /// The elements of the value at `position`.
    #[inline(always)]
    pub(crate) fn row(&self, position: usize) -> &'a [E] {
        &self.values[position * self.head_dim..][..self.head_dim]
    }

    /// The scales of the value at `position`.
    #[inline(always)]
    pub(crate) fn row_scales(&self, position: usize) -> &'a [f16] {
        let scales = self.scales_per_row();
        &self.value_scales[position * scales..][..scales]
    }

    #[inline(always)]
    fn scales_per_row(&self) -> usize {
        E::SCALE_BLOCK.map_or(0, |block| self.head_dim / block)
    }

    pub(super) fn read_key(&self, position: usize, out: &mut [f32]) {
        let (panel, lane) = (position / PANEL, position % PANEL);
        let scales = self.panel_scales(panel);
        for (d, (out, column)) in out.iter_mut().zip(self.panel(panel)).enumerate() {
            let scale = E::SCALE_BLOCK.map_or(f16::ONE, |block| scales[d / block][lane]);
            *out = column[lane].widen(scale);
        }
    }

    pub(super) fn read_value(&self, position: usize, out: &mut [f32]) {
        let scales = self.row_scales(position);
        for (d, (out, element)) in out.iter_mut().zip(self.row(position)).enumerate() {
            let scale = E::SCALE_BLOCK.map_or(f16::ONE, |block| scales[d / block]);
            *out = element.widen(scale);
        }
    }
}
