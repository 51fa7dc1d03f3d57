//! KV caches in llama.cpp's layout, and the attention nodes on it.

use super::graph::{Builder, Data, Kind, Tensor};
use super::{Elements, Mode};
use crate::context::Stored;
use crate::memory::{Buffer, PageKind};
use ck_fused::LayerShape;
use half::f16;

/// llama.cpp attends to a multiple of this many positions, the last of them masked.
const PADDING: usize = 256;

/// Caches with the same contents, one after the other. Keys by position, `[position][kv_dim]`; values the
/// same way for flash attention, and transposed, `[kv_dim][position]`, for the plain one.
pub struct Caches {
    buffer: Buffer,
    kind: PageKind,
    count: usize,
    layout: Layout,
}

/// Where things are in a cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    mode: Mode,
    shape: LayerShape,
    /// Positions attended to, the one that is decoded among them.
    positions: usize,
    /// The same with the padding: the capacity.
    padded: usize,
}

impl Layout {
    pub(super) fn new(mode: Mode, shape: LayerShape, positions: usize) -> Self {
        Self { mode, shape, positions, padded: positions.next_multiple_of(PADDING) }
    }

    /// Bytes of the keys of a cache, and of its values, which begin at a multiple of 64.
    fn half(self) -> usize {
        (self.padded * self.shape.kv_dim() * self.mode.elements.bytes()).next_multiple_of(64)
    }

    pub(super) fn positions(self) -> usize {
        self.positions
    }

    fn kind(self) -> Kind {
        match self.mode.elements {
            Elements::F32 => Kind::F32,
            Elements::F16 => Kind::F16,
        }
    }

    /// What is added to the scores: nothing, and minus infinity in the padding; in the type that the mode takes.
    pub(super) fn mask(self) -> Vec<u8> {
        let value = |index: usize| if index < self.positions { 0.0 } else { f32::NEG_INFINITY };
        let values = (0..self.padded).map(value);
        match self.mode.flash {
            true => values.flat_map(|x| f16::from_f32(x).to_ne_bytes()).collect(),
            false => values.flat_map(f32::to_ne_bytes).collect(),
        }
    }

    /// Outside tensors for the mask, the keys and the values, in this order.
    pub(super) fn tensors(self, builder: &mut Builder) -> [Tensor; 3] {
        let kv_dim = self.shape.kv_dim();
        let mask = if self.mode.flash { Kind::F16 } else { Kind::F32 };
        let mask = builder.outside(mask, self.padded, 1);
        let keys = builder.outside_mut(self.kind(), kv_dim, self.padded);
        let values = match self.mode.flash {
            true => builder.outside_mut(self.kind(), kv_dim, self.padded),
            false => builder.outside_mut(self.kind(), self.padded, kv_dim),
        };
        [mask, keys, values]
    }

    /// Stores the row of the position that is decoded: the nodes that do it.
    pub(super) fn store(
        self,
        builder: &mut Builder,
        [keys, values]: [Tensor; 2],
        [k, v]: [Tensor; 2],
    ) -> [Tensor; 2] {
        let (kv_dim, bytes, last) =
            (self.shape.kv_dim(), self.mode.elements.bytes(), self.positions - 1);
        let row = kv_dim * bytes;
        let sizes = [kv_dim, 1, 1];
        let k = builder.reshape(k, sizes);
        let v = builder.reshape(v, sizes);
        let key_row = builder.view(keys, sizes, [row, row], last * row);
        let k = builder.copy(k, key_row);
        if self.mode.flash {
            let value_row = builder.view(values, sizes, [row, row], last * row);
            return [k, builder.copy(v, value_row)];
        }
        let stride = self.padded * bytes;
        let column = builder.view(values, [1, kv_dim, 1], [stride, stride * kv_dim], last * bytes);
        let v = builder.transpose(v);
        [k, builder.copy(v, column)]
    }

    /// Attention of `q`, `[1][n_heads][head_dim]`; the result is one row.
    pub(super) fn attend(
        self,
        builder: &mut Builder,
        q: Tensor,
        [mask, keys, values]: [Tensor; 3],
    ) -> Tensor {
        let (shape, bytes) = (self.shape, self.mode.elements.bytes());
        let (head_dim, n_kv_heads, n_kv) = (shape.head_dim(), shape.n_kv_heads(), self.padded);
        let (head, row) = (head_dim * bytes, shape.kv_dim() * bytes);
        let scale = 1.0 / (head_dim as f32).sqrt();
        let by_position = [head_dim, n_kv_heads, n_kv];
        let q = builder.swap_outer(q);
        let k = builder.view(keys, by_position, [head, row], 0);
        let k = builder.swap_outer(k);
        if self.mode.flash {
            let v = builder.view(values, by_position, [head, row], 0);
            let v = builder.swap_outer(v);
            let out = builder.flash_attention([q, k, v, mask], scale);
            return builder.reshape(out, [shape.q_dim(), 1, 1]);
        }
        let stride = n_kv * bytes;
        let v = builder.view(values, [n_kv, head_dim, n_kv_heads], [stride, stride * head_dim], 0);
        let scores = builder.mul_mat(k, q);
        let weights = builder.soft_max(scores, mask, scale);
        let out = builder.mul_mat(v, weights);
        let out = builder.swap_outer(out);
        builder.continuous_row(out, shape.q_dim())
    }
}

impl Caches {
    /// `count` caches for `positions` positions that hold those of `stored`, in pages of one kind.
    ///
    /// # Panics
    ///
    /// If more are stored than there are to be.
    #[must_use]
    pub fn new(
        (mode, shape): (Mode, LayerShape),
        positions: usize,
        stored: &Stored,
        count: usize,
        pages: PageKind,
    ) -> Self {
        assert!(stored.positions <= positions, "positions that are stored");
        let layout = Layout::new(mode, shape, positions);
        let (kv_dim, half) = (shape.kv_dim(), layout.half());
        let mut buffer = Buffer::new(2 * half * count, pages);
        let (first, others) = buffer.split_at_mut(2 * half);
        let (keys, values) = first.split_at_mut(half);
        let put = |bytes: &mut [u8], element: usize, value: f16| match mode.elements {
            Elements::F32 => {
                bytes[element * 4..][..4].copy_from_slice(&value.to_f32().to_ne_bytes())
            }
            Elements::F16 => bytes[element * 2..][..2].copy_from_slice(&value.to_ne_bytes()),
        };
        for (index, (key, value)) in stored.keys.iter().zip(&stored.values).enumerate() {
            put(keys, index, *key);
            let (position, channel) = (index / kv_dim, index % kv_dim);
            let transposed = channel * layout.padded + position;
            put(values, if mode.flash { index } else { transposed }, *value);
        }
        others.chunks_exact_mut(2 * half).for_each(|other| other.copy_from_slice(first));
        Self { buffer, kind: pages, count, layout }
    }

    /// The kind of pages.
    pub(super) fn kind(&self) -> PageKind {
        self.kind
    }

    pub(super) fn layout(&self) -> Layout {
        self.layout
    }

    /// Keys and values of one cache, taken modulo their number, for a graph.
    pub(super) fn data(&mut self, index: usize) -> [Data<'_>; 2] {
        let half = self.layout.half();
        let start = index % self.count * 2 * half;
        let (keys, values) = self.buffer[start..start + 2 * half].split_at_mut(half);
        [Data::from(keys), Data::from(values)]
    }
}
