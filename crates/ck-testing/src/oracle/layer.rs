//! The attention block of a decoder layer, stage by stage, from the bytes of its weights.

use super::{
    Attention, BLOCK, CacheRounding, HeadNorm, LayerWeights, Projection, Rejected, Rope,
    reject_non_finite, rmsnorm, widen,
};

/// What one step computed, stage by stage.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerTrace {
    /// After RMSNorm.
    pub norm: Vec<f64>,
    /// Queries after bias, norm of heads and RoPE.
    pub q: Vec<f64>,
    /// Keys after bias, norm of heads and RoPE, before the cache rounds them.
    pub k: Vec<f64>,
    /// Values after bias, before the cache rounds them.
    pub v: Vec<f64>,
    /// The attention output of all heads.
    pub attn: Vec<f64>,
    /// After the O projection, its bias and the residual.
    pub output: Vec<f64>,
}

/// An attention block with its history of keys and values.
///
/// [`Layer::step`] runs all stages; each stage is also a method of its own, so that it can be fed with
/// recorded values.
#[derive(Clone, Debug)]
pub struct Layer {
    /// The weights.
    pub weights: LayerWeights,
    /// The rotation of queries and keys.
    pub rope: Rope,
    /// Head counts, scale and the options of attention.
    pub attention: Attention,
    /// What stored rows are rounded to.
    pub cache: CacheRounding,
    keys: Vec<f64>,
    values: Vec<f64>,
}

impl Layer {
    /// A layer with an empty history and the default attention of its shape.
    ///
    /// # Errors
    ///
    /// [`Rejected::HeadCounts`]; [`Rejected::PartialBlock`] if `embed_dim`, `n_heads * head_dim` or, with a
    /// Q8_0 cache, `head_dim` is no multiple of [`BLOCK`].
    ///
    /// # Panics
    ///
    /// If the weights do not have the lengths of their shape.
    pub fn new(weights: LayerWeights, rope: Rope, cache: CacheRounding) -> Result<Self, Rejected> {
        let shape = weights.shape;
        let attention = Attention::new(shape.n_heads, shape.n_kv_heads, shape.head_dim)?;
        let cache_blocks = if cache == CacheRounding::Q8_0 { shape.head_dim } else { BLOCK };
        for len in [shape.embed_dim, shape.q_width(), cache_blocks] {
            if len % BLOCK != 0 {
                return Err(Rejected::PartialBlock { len });
            }
        }
        assert_eq!(weights.gamma.len(), shape.embed_dim, "one gamma per element");
        for (name, projection, rows, columns) in [
            ("q", &weights.q, shape.q_width(), shape.embed_dim),
            ("k", &weights.k, shape.kv_width(), shape.embed_dim),
            ("v", &weights.v, shape.kv_width(), shape.embed_dim),
            ("o", &weights.o, shape.embed_dim, shape.q_width()),
        ] {
            assert_eq!(projection.columns, columns, "columns of {name}");
            assert_eq!(projection.rows(), rows, "rows of {name}");
        }
        for norm in [&weights.q_norm, &weights.k_norm].into_iter().flatten() {
            assert_eq!(norm.gamma.len(), shape.head_dim, "one gamma per element of a head");
        }
        Ok(Self { weights, rope, attention, cache, keys: Vec::new(), values: Vec::new() })
    }

    /// How many positions are stored; also the position of the next step.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len() / self.weights.shape.kv_width()
    }

    /// Whether nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The stored keys, as the cache returns them, one row per position.
    #[must_use]
    pub fn keys(&self) -> &[f64] {
        &self.keys
    }

    /// The stored values, as the cache returns them, one row per position.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Forgets all positions from `len` on.
    pub fn truncate(&mut self, len: usize) {
        let kept = len * self.weights.shape.kv_width();
        self.keys.truncate(kept);
        self.values.truncate(kept);
    }

    /// Stage `norm`.
    ///
    /// # Errors
    ///
    /// Those of [`rmsnorm`].
    pub fn norm(&self, input: &[f32]) -> Result<Vec<f64>, Rejected> {
        let gamma = widen(&self.weights.gamma);
        Ok(rmsnorm(&widen(input), &gamma, self.weights.eps)?.values)
    }

    /// Stage `q` at a position: projection of the quantized `norm`, bias, norm of heads, RoPE.
    ///
    /// # Errors
    ///
    /// Those of [`super::quantize_row`] and [`rmsnorm`].
    pub fn project_q(&self, norm: &[f64], position: usize) -> Result<Vec<f64>, Rejected> {
        self.rotated(&self.weights.q, self.weights.q_norm.as_ref(), norm, position)
    }

    /// Stage `k` at a position: projection of the quantized `norm`, bias, norm of heads, RoPE.
    ///
    /// # Errors
    ///
    /// Those of [`super::quantize_row`] and [`rmsnorm`].
    pub fn project_k(&self, norm: &[f64], position: usize) -> Result<Vec<f64>, Rejected> {
        self.rotated(&self.weights.k, self.weights.k_norm.as_ref(), norm, position)
    }

    /// Stage `v`: projection of the quantized `norm`, bias.
    ///
    /// # Errors
    ///
    /// Those of [`super::quantize_row`].
    pub fn project_v(&self, norm: &[f64]) -> Result<Vec<f64>, Rejected> {
        self.weights.v.apply(norm)
    }

    /// Rounds a row of keys and a row of values to the cache's type and appends them.
    ///
    /// # Errors
    ///
    /// Those of [`CacheRounding::round`]; nothing is stored then.
    ///
    /// # Panics
    ///
    /// If a row has the wrong length.
    pub fn store(&mut self, k: &[f64], v: &[f64]) -> Result<(), Rejected> {
        assert_eq!(k.len(), self.weights.shape.kv_width(), "elements of the key row");
        assert_eq!(v.len(), self.weights.shape.kv_width(), "elements of the value row");
        let (k, v) = (self.cache.round(k)?, self.cache.round(v)?);
        self.keys.extend(k);
        self.values.extend(v);
        Ok(())
    }

    /// Stage `attn`: attention of a query row to everything stored.
    #[must_use]
    pub fn attend(&self, q: &[f64]) -> Vec<f64> {
        self.attention.attend(q, &self.keys, &self.values)
    }

    /// Stage `output`: projection of the quantized attention output, bias, residual.
    ///
    /// # Errors
    ///
    /// Those of [`super::quantize_row`]; [`Rejected::NonFinite`] for an element of the residual.
    ///
    /// # Panics
    ///
    /// If the residual has the wrong length.
    pub fn output(&self, attn: &[f64], residual: Option<&[f32]>) -> Result<Vec<f64>, Rejected> {
        let mut output = self.weights.o.apply(attn)?;
        if let Some(residual) = residual {
            assert_eq!(residual.len(), output.len(), "elements of the residual");
            reject_non_finite(residual.iter().copied().map(f64::from))?;
            for (out, &residual) in output.iter_mut().zip(residual) {
                *out += f64::from(residual);
            }
        }
        Ok(output)
    }

    /// Runs all stages for the next position and stores its keys and values.
    ///
    /// # Errors
    ///
    /// Those of the stages; the history is then as it was.
    pub fn step(
        &mut self,
        input: &[f32],
        residual: Option<&[f32]>,
    ) -> Result<LayerTrace, Rejected> {
        let position = self.len();
        let norm = self.norm(input)?;
        let q = self.project_q(&norm, position)?;
        let k = self.project_k(&norm, position)?;
        let v = self.project_v(&norm)?;
        self.store(&k, &v)?;
        let attn = self.attend(&q);
        match self.output(&attn, residual) {
            Ok(output) => Ok(LayerTrace { norm, q, k, v, attn, output }),
            Err(rejected) => {
                self.truncate(position);
                Err(rejected)
            }
        }
    }

    fn rotated(
        &self,
        projection: &Projection,
        head_norm: Option<&HeadNorm>,
        norm: &[f64],
        position: usize,
    ) -> Result<Vec<f64>, Rejected> {
        let mut row = projection.apply(norm)?;
        if let Some(head_norm) = head_norm {
            head_norm.apply(&mut row)?;
        }
        self.rope.rotate_row(position, self.weights.shape.head_dim, &mut row);
        Ok(row)
    }
}
