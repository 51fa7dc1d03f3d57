//! What a call works with besides the weights and the token.

use crate::{DecodeLayer, LayerError, LayerShape, Scratch};
use ck_ops::{CacheElement, KvCache, RopeTable};

/// A layer's cache, and what its calls share with other layers.
#[derive(Debug)]
pub struct Context<'c, E: CacheElement> {
    /// The angles of the positions; none for a model that does not rotate.
    pub rope: Option<&'c RopeTable>,
    /// The layer's own cache.
    pub cache: &'c mut KvCache<E>,
    /// The memory to work in.
    pub scratch: &'c mut Scratch<E>,
}

impl<E: CacheElement> Context<'_, E> {
    /// Checks that every part fits the layer and that there is room for one more position.
    pub(crate) fn check(&self, layer: &DecodeLayer<'_>) -> Result<(), LayerError> {
        let shape = layer.shape();
        let cache = self.cache.shape();
        if cache != shape.cache()? {
            return Err(shape.mismatch("the cache", cache.to_string()));
        }
        if self.scratch.shape() != shape {
            return Err(shape.mismatch("the scratch", self.scratch.shape().to_string()));
        }
        let (len, capacity) = (self.cache.len(), self.cache.capacity());
        if len >= capacity {
            return Err(LayerError::CacheFull { len, capacity });
        }
        if let Some(rope) = self.rope {
            if rope.config().head_dim != shape.head_dim() {
                let found = format!("head dim {}", rope.config().head_dim);
                return Err(shape.mismatch("the RoPE table", found));
            }
            let available = rope.positions();
            if len >= available {
                return Err(LayerError::Position { what: "RoPE table", position: len, available });
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
