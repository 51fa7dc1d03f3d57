//! What a call works with besides the weights and the token.

use crate::{DecodeLayer, LayerError, LayerShape, Runner, Scratch};
use ck_ops::{CacheElement, KvCache, RopeTable};

/// A layer's cache, and what its calls share with other layers.
#[derive(Debug)]
pub struct DecodeContext<'c, E: CacheElement> {
    /// The angles of the positions; none for a model that does not rotate.
    pub rope: Option<&'c RopeTable>,
    /// The layer's own cache.
    pub cache: &'c mut KvCache<E>,
    /// The memory to work in.
    pub scratch: &'c mut Scratch<E>,
}

impl<E: CacheElement> DecodeContext<'_, E> {
    /// Checks that every part fits the layer and that there is room for one more position.
    pub(crate) fn check(
        &self,
        layer: &DecodeLayer<'_>,
        runner: &Runner<'_>,
    ) -> Result<(), LayerError> {
        layer.check_scratch(self.scratch)?;
        layer.check_rope(self.rope)?;
        layer.check_cache(self.cache)?;
        let (len, capacity) = (self.cache.len(), self.cache.capacity());
        if len >= capacity {
            return Err(LayerError::CacheFull { len, capacity });
        }
        layer.check_position(len, self.scratch, self.rope)?;
        let (expected, found) = (runner.team(), self.scratch.team());
        if found < expected {
            return Err(LayerError::Team { expected, found });
        }
        Ok(())
    }
}

impl DecodeLayer<'_> {
    /// Checks that the scratch was made for this layer's shape.
    pub(crate) fn check_scratch<E: CacheElement>(
        &self,
        scratch: &Scratch<E>,
    ) -> Result<(), LayerError> {
        if scratch.shape() == self.shape() {
            return Ok(());
        }
        Err(self.shape().mismatch("the scratch", scratch.shape().to_string()))
    }

    /// Checks that the table turns heads of this layer's dimension.
    pub(crate) fn check_rope(&self, rope: Option<&RopeTable>) -> Result<(), LayerError> {
        match rope.map(|rope| rope.config().head_dim) {
            Some(head_dim) if head_dim != self.shape().head_dim() => {
                Err(self.shape().mismatch("the RoPE table", format!("head dim {head_dim}")))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the cache is of this layer's shape.
    pub(crate) fn check_cache<E: CacheElement>(
        &self,
        cache: &KvCache<E>,
    ) -> Result<(), LayerError> {
        if cache.shape() == self.shape().cache()? {
            return Ok(());
        }
        Err(self.shape().mismatch("the cache", cache.shape().to_string()))
    }

    /// Checks that scratch and table reach to a position.
    pub(crate) fn check_position<E: CacheElement>(
        &self,
        position: usize,
        scratch: &Scratch<E>,
        rope: Option<&RopeTable>,
    ) -> Result<(), LayerError> {
        let table = rope.map(|rope| ("RoPE table", rope.positions()));
        for (what, available) in
            [table, Some(("scratch", scratch.positions()))].into_iter().flatten()
        {
            if position >= available {
                return Err(LayerError::Position { what, position, available });
            }
        }
        Ok(())
    }
}

impl LayerShape {
    /// The error that says that `what` was made for another shape.
    pub(crate) fn mismatch(&self, what: &'static str, found: String) -> LayerError {
        LayerError::Mismatch { what, expected: self.to_string(), found }
    }
}
