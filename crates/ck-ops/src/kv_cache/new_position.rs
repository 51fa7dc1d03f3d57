//! The key and value of the position that is being decoded, before they are stored.

use super::segment::{HeadSegment, Layout, OVER_READ};
use super::{CacheElement, CacheShape, PANEL};
use crate::OpError;
use crate::aligned::AlignedZeroed;
use crate::finite::check_length;
use ck_isa::Isa;
use half::f16;
use std::fmt;

/// What an error about memory names.
const WHAT: &str = "new position";

/// The keys and values of one position, of every KV head, rounded to the cache's element type.
///
/// Attention reads a [`KvCache`](crate::KvCache) and one of these; the position is appended to the cache
/// only after everything that could fail has succeeded. It is made once and set for every token.
pub struct NewPosition<E> {
    shape: CacheShape,
    heads: Vec<NewHead<E>>,
}

impl<E: CacheElement> NewPosition<E> {
    /// A position of zeros.
    ///
    /// # Errors
    ///
    /// [`OpError::HeadDimBlock`] where the element type does not fit the shape, [`OpError::SizeOverflow`] and
    /// [`OpError::OutOfMemory`].
    pub fn new(shape: CacheShape) -> Result<Self, OpError> {
        let layout = Layout::of::<E>(shape)?;
        let n = shape.n_kv_heads();
        let bytes = n.saturating_mul(size_of::<NewHead<E>>());
        let mut heads = Vec::new();
        heads.try_reserve_exact(n).map_err(|_| OpError::OutOfMemory { what: WHAT, bytes })?;
        for _ in 0..n {
            heads.push(NewHead::try_new(&layout)?);
        }
        Ok(Self { shape, heads })
    }

    /// KV heads and head dimension.
    #[must_use]
    pub fn shape(&self) -> CacheShape {
        self.shape
    }

    /// Sets the keys (after RoPE) and values of every KV head: `[n_kv_heads][head_dim]` each.
    ///
    /// # Errors
    ///
    /// [`OpError::Length`], [`OpError::NonFinite`] and [`OpError::BeyondRange`]; nothing has then changed.
    pub fn set(&mut self, isa: Isa, keys: &[f32], values: &[f32]) -> Result<(), OpError> {
        let (n, head_dim) = (self.shape.n_kv_heads(), self.shape.head_dim());
        check_length("keys", n * head_dim, keys.len())?;
        check_length("values", n * head_dim, values.len())?;
        E::check("keys", keys)?;
        E::check("values", values)?;
        let rows = keys.chunks_exact(head_dim).zip(values.chunks_exact(head_dim));
        for (head, (key, value)) in self.heads.iter_mut().zip(rows) {
            head.round(isa, key, value);
        }
        Ok(())
    }

    /// Sets the key (after RoPE) and the value of one KV head.
    ///
    /// # Errors
    ///
    /// [`OpError::NoSuchKvHead`], and those of [`NewHead::set`]; nothing has then changed.
    pub fn set_head(
        &mut self,
        isa: Isa,
        kv_head: usize,
        key: &[f32],
        value: &[f32],
    ) -> Result<(), OpError> {
        self.shape.check_kv_head(kv_head)?;
        self.heads[kv_head].set(isa, key, value)
    }

    /// The KV heads one by one, so that each can be set by another thread.
    pub fn heads_mut(&mut self) -> &mut [NewHead<E>] {
        &mut self.heads
    }

    /// Reads back the key of one KV head, as rounded.
    ///
    /// # Errors
    ///
    /// [`OpError::NoSuchKvHead`] and [`OpError::Length`].
    pub fn key(&self, kv_head: usize, out: &mut [f32]) -> Result<(), OpError> {
        self.check_read(kv_head, out)?;
        self.head(kv_head).read_key(0, out);
        Ok(())
    }

    /// Reads back the value of one KV head, as rounded.
    ///
    /// # Errors
    ///
    /// As [`key`](Self::key).
    pub fn value(&self, kv_head: usize, out: &mut [f32]) -> Result<(), OpError> {
        self.check_read(kv_head, out)?;
        self.head(kv_head).read_value(0, out);
        Ok(())
    }

    fn check_read(&self, kv_head: usize, out: &[f32]) -> Result<(), OpError> {
        self.shape.check_kv_head(kv_head)?;
        check_length("head", self.shape.head_dim(), out.len())
    }

    /// The KV head as a segment of one position.
    pub(crate) fn head(&self, kv_head: usize) -> HeadSegment<'_, E> {
        self.heads[kv_head].segment()
    }
}

impl<E: CacheElement> fmt::Debug for NewPosition<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewPosition")
            .field("element", &E::NAME)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

/// The key and value of one KV head of a [`NewPosition`].
///
/// The key is laid out as a panel of which only lane 0 is used, so that scores are computed by the code that
/// reads the cache.
pub struct NewHead<E> {
    head_dim: usize,
    panel: AlignedZeroed<E>,
    row: AlignedZeroed<E>,
    panel_scales: AlignedZeroed<f16>,
    row_scales: AlignedZeroed<f16>,
}

impl<E: CacheElement> NewHead<E> {
    fn try_new(layout: &Layout) -> Result<Self, OpError> {
        let (head_dim, scales) = (layout.shape.head_dim(), layout.scales_per_row);
        Ok(Self {
            head_dim,
            panel: AlignedZeroed::try_new(head_dim * PANEL, WHAT)?,
            row: AlignedZeroed::try_new(head_dim + OVER_READ, WHAT)?,
            panel_scales: AlignedZeroed::try_new(scales * PANEL, WHAT)?,
            row_scales: AlignedZeroed::try_new(scales + OVER_READ, WHAT)?,
        })
    }

    /// Rounds `key` (after RoPE) and `value` to the element type and keeps them.
    ///
    /// # Errors
    ///
    /// [`OpError::Length`], [`OpError::NonFinite`] and [`OpError::BeyondRange`]; nothing has then changed.
    pub fn set(&mut self, isa: Isa, key: &[f32], value: &[f32]) -> Result<(), OpError> {
        check_length("key", self.head_dim, key.len())?;
        check_length("value", self.head_dim, value.len())?;
        E::check("key", key)?;
        E::check("value", value)?;
        self.round(isa, key, value);
        Ok(())
    }

    /// Keeps a key and a value that were checked.
    fn round(&mut self, isa: Isa, key: &[f32], value: &[f32]) {
        let (head_dim, scales) = (self.head_dim, self.panel_scales.len() / PANEL);
        // The key is rounded in the row's place, then moved to its lane.
        let (row, row_scales) = (&mut self.row[..head_dim], &mut self.row_scales[..scales]);
        E::round(isa, key, row, row_scales);
        for (to, &from) in self.panel.chunks_exact_mut(PANEL).zip(&*row) {
            to[0] = from;
        }
        for (to, &from) in self.panel_scales.chunks_exact_mut(PANEL).zip(&*row_scales) {
            to[0] = from;
        }
        E::round(isa, value, row, row_scales);
    }

    fn segment(&self) -> HeadSegment<'_, E> {
        HeadSegment {
            head_dim: self.head_dim,
            keys: &self.panel,
            values: &self.row,
            key_scales: &self.panel_scales,
            value_scales: &self.row_scales,
        }
    }
}

impl<E: CacheElement> fmt::Debug for NewHead<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewHead")
            .field("element", &E::NAME)
            .field("head_dim", &self.head_dim)
            .finish_non_exhaustive()
    }
}
