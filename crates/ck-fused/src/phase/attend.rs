//! The new position's row of the cache, and attention over it and everything stored.

use crate::{LayerError, Scratch};
use ck_ops::{Attention, CacheElement, KvCache, flash_decode};
use ck_quant::Isa;

/// Rounds the new K and V to the cache's type and attends with every query head.
///
/// Reads the scratch's Q, K and V, which are rotated, and writes its new position and its heads' results.
/// The cache is only read: its new row is stored by the caller once nothing can fail any more.
pub(crate) fn attend<E: CacheElement>(
    isa: Isa,
    attention: &Attention,
    cache: &KvCache<E>,
    scratch: &mut Scratch<E>,
) -> Result<(), LayerError> {
    let (q, k, v) = scratch.shape.split(&scratch.qkv);
    scratch.new.set(isa, k, v)?;
    let new = Some(&scratch.new);
    flash_decode(isa, attention, cache, new, q, &mut scratch.attend, &mut scratch.attn)?;
    Ok(())
}
