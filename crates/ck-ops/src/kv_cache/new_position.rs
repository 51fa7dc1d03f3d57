//! The key and value of the position that is being decoded, before they are stored.

use super::segment::{HeadSegment, Layout, OVER_READ};
use super::{CacheElement, CacheShape, PANEL};
use crate::OpError;
use crate::finite::check_length;
use crate::memory::zeroed;
use ck_isa::Isa;
use ck_pages::ZeroedSlice;
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
        self.check_heads()?;
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
    /// [`OpError::NoSuchKvHead`], [`OpError::Length`] for a head of another dimension, and those of [`NewHead::set`];
    /// nothing has then changed.
    pub fn set_head(
        &mut self,
        isa: Isa,
        kv_head: usize,
        key: &[f32],
        value: &[f32],
    ) -> Result<(), OpError> {
        self.check_heads()?;
        self.shape.check_kv_head(kv_head)?;
        self.heads[kv_head].set(isa, key, value)
    }

    /// The KV heads one by one, so that each can be set by another thread.
    ///
    /// A head that is exchanged for one of another dimension makes every later use of this position an error.
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

    /// Refuses a position with a head of another dimension, which [`heads_mut`](Self::heads_mut) lets a caller put
    /// there.
    pub(crate) fn check_heads(&self) -> Result<(), OpError> {
        let expected = self.shape.head_dim();
        let other = self.heads.iter().map(|head| head.head_dim).find(|found| *found != expected);
        let what = "head of the new position";
        other.map_or(Ok(()), |found| Err(OpError::Length { what, expected, found }))
    }

    fn check_read(&self, kv_head: usize, out: &[f32]) -> Result<(), OpError> {
        self.check_heads()?;
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
    panel: ZeroedSlice<E>,
    row: ZeroedSlice<E>,
    panel_scales: ZeroedSlice<f16>,
    row_scales: ZeroedSlice<f16>,
}

impl<E: CacheElement> NewHead<E> {
    fn try_new(layout: &Layout) -> Result<Self, OpError> {
        let (head_dim, scales) = (layout.shape.head_dim(), layout.scales_per_row);
        Ok(Self {
            head_dim,
            panel: zeroed(head_dim * PANEL, WHAT)?,
            row: zeroed(head_dim + OVER_READ, WHAT)?,
            panel_scales: zeroed(scales * PANEL, WHAT)?,
            row_scales: zeroed(scales + OVER_READ, WHAT)?,
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
        E::round(isa, key, &mut self.row[..head_dim], &mut self.row_scales[..scales]);
        self.row_is_the_key();
        E::round(isa, value, &mut self.row[..head_dim], &mut self.row_scales[..scales]);
    }

    /// Moves a key that was made in the row's place to its lane.
    fn row_is_the_key(&mut self) {
        for (to, &from) in self.panel.chunks_exact_mut(PANEL).zip(&*self.row) {
            to[0] = from;
        }
        for (to, &from) in self.panel_scales.chunks_exact_mut(PANEL).zip(&*self.row_scales) {
            to[0] = from;
        }
    }

    /// Takes over a key as [`HeadSegment::put_key`] wrote it; whether it is finite. The value is then to be taken over too.
    pub(super) fn take_key(&mut self, bytes: &[u8]) -> bool {
        let is_finite = self.take_value(bytes);
        self.row_is_the_key();
        is_finite
    }

    /// Takes over a value as [`HeadSegment::put_value`] wrote it; whether it is finite.
    pub(super) fn take_value(&mut self, bytes: &[u8]) -> bool {
        let (head_dim, scales) = (self.head_dim, self.panel_scales.len() / PANEL);
        E::take(bytes, &mut self.row[..head_dim], &mut self.row_scales[..scales])
    }

    fn segment(&self) -> HeadSegment<'_, E> {
        HeadSegment {
            head_dim: self.head_dim,
            positions: 1,
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
