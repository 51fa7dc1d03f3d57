//! Random layers, the memory that they decode in, and calls.

use ck_fused::{
    DecodeContext, DecodeLayer, LayerError, LayerShape, LayerWeights, Norm, Projection,
    Projections, Runner, Scratch,
};
use ck_ops::{
    CacheElement, KvCache, NewPosition, Pairing, RopeConfig, RopeScaling, RopeTable, Yarn,
};
use ck_quant::{Format, Isa, Matrix};
use ck_testing::generate::{Biases, Formats, Rng, Values, random_layer, with_head_norms};
use ck_testing::oracle::{self, Rope, Scaling, Shape};

/// Two query heads share each KV head, and no two widths are equal.
pub(crate) const SHAPE: Shape = Shape { embed_dim: 96, n_heads: 4, n_kv_heads: 2, head_dim: 32 };

/// A rotation of the whole head of [`SHAPE`].
pub(crate) const ROPE: Rope = Rope::new(oracle::Pairing::SplitHalf, 32, 1e4);

/// A rotation for four times a context of 64 positions: the ramp ends within the head, and heads become longer, by
/// 1 + 0.1 ln 4 and by a factor of the model, also at position 0.
pub(crate) const YARN: Rope = ROPE.with_scaling(Scaling::Ggml {
    freq_scale: 0.25,
    ext_factor: 1.0,
    attn_factor: 1.125,
    beta_fast: 8.0,
    beta_slow: 1.0,
    n_ctx_orig: 64.0,
});

/// No rotation at all: a rotary width of 0.
pub(crate) const NO_ROPE: Rope = Rope { width: 0, ..ROPE };

/// The weights of a layer, and its rotation.
#[derive(Clone)]
pub(crate) struct Sample {
    pub(crate) weights: oracle::LayerWeights,
    pub(crate) rope: Rope,
}

impl Sample {
    /// Random weights with all four biases, in the formats of the recordings.
    pub(crate) fn new(seed: u64, shape: Shape, rope: Rope) -> Self {
        Self { weights: random_layer(seed, shape, Formats::RECORDED, Biases::ALL), rope }
    }

    /// The same with norms of its query heads and key heads.
    pub(crate) fn with_head_norms(self, seed: u64) -> Self {
        Self { weights: with_head_norms(seed, self.weights), ..self }
    }

    /// A sample of [`SHAPE`].
    pub(crate) fn small(seed: u64) -> Self {
        Self::new(seed, SHAPE, ROPE)
    }

    pub(crate) fn shape(&self) -> LayerShape {
        let Shape { embed_dim, n_heads, n_kv_heads, head_dim } = self.weights.shape;
        LayerShape::new(embed_dim, n_heads, n_kv_heads, head_dim).expect("a good shape")
    }

    /// The weights as the layer takes them, borrowed.
    pub(crate) fn layer_weights(&self) -> LayerWeights<'_> {
        let mut weights = LayerWeights::new(
            Norm::new(&self.weights.gamma[..], self.weights.eps),
            Projections {
                q: projection(&self.weights.q),
                k: projection(&self.weights.k),
                v: projection(&self.weights.v),
                o: projection(&self.weights.o),
            },
        );
        weights.q_norm = self.weights.q_norm.as_ref().map(head_norm);
        weights.k_norm = self.weights.k_norm.as_ref().map(head_norm);
        weights
    }

    pub(crate) fn layer(&self) -> DecodeLayer<'_> {
        DecodeLayer::new(self.shape(), self.layer_weights()).expect("good weights")
    }

    /// The layer's rotation for positions below `positions`, if it rotates.
    pub(crate) fn table(&self, positions: usize) -> Option<RopeTable> {
        let pairing = match self.rope.pairing {
            oracle::Pairing::SplitHalf => Pairing::SplitHalf,
            oracle::Pairing::Interleaved => Pairing::Interleaved,
        };
        let config = RopeConfig::new(self.weights.shape.head_dim, self.rope.base)
            .with_rot_dim(self.rope.width)
            .with_pairing(pairing);
        let config = scaled(config, &self.rope);
        let table = || RopeTable::new(config, positions).expect("a good rotation");
        (self.rope.width > 0).then(table)
    }

    /// A hidden state, another one for every token.
    pub(crate) fn input(&self, token: usize) -> Vec<f32> {
        Values::HugeActivations.row(&mut Rng::new(1 + token as u64), self.weights.shape.embed_dim)
    }
}

/// A configuration with the oracle's scaling, if there is one: the arguments of ggml's rope operator.
fn scaled(config: RopeConfig, rope: &Rope) -> RopeConfig {
    match rope.scaling {
        Scaling::Ggml { freq_scale, ext_factor, beta_fast, beta_slow, n_ctx_orig, .. }
            if rope.scaling != Scaling::NONE =>
        {
            let yarn = Yarn::new(1.0 / freq_scale, n_ctx_orig as usize)
                .with_ext_factor(ext_factor)
                .with_betas(beta_fast, beta_slow);
            let attn_factor = rope.magnitude() / yarn.magnitude();
            config.with_scaling(RopeScaling::Yarn(yarn)).with_attn_factor(attn_factor)
        }
        Scaling::Ggml { .. } => config,
        Scaling::Llama3 { .. } => unreachable!("no sample has it"),
    }
}

fn head_norm(norm: &oracle::HeadNorm) -> Norm<'_> {
    Norm::new(&norm.gamma[..], norm.eps)
}

fn projection(projection: &oracle::Projection) -> Projection<'_> {
    let oracle::Projection { columns, bytes, .. } = projection;
    let format = format(projection.format);
    let matrix = Matrix::new(format, projection.rows(), *columns, bytes).expect("whole rows");
    let projected = Projection::new(matrix);
    match &projection.bias {
        Some(bias) => projected.with_bias(&bias[..]),
        None => projected,
    }
}

pub(crate) fn format(format: oracle::Format) -> Format {
    match format {
        oracle::Format::Q5_0 => Format::Q5_0,
        oracle::Format::Q8_0 => Format::Q8_0,
    }
}

/// What a layer decodes in.
pub(crate) struct Memory<E: CacheElement> {
    pub(crate) rope: Option<RopeTable>,
    pub(crate) cache: KvCache<E>,
    pub(crate) scratch: Scratch<E>,
}

impl<E: CacheElement> Memory<E> {
    /// Room for `capacity` positions.
    pub(crate) fn new(sample: &Sample, capacity: usize) -> Self {
        let shape = sample.shape();
        let cache_shape = shape.cache().expect("a shape of a cache");
        Self {
            rope: sample.table(capacity),
            cache: KvCache::with_capacity(cache_shape, capacity).expect("memory"),
            scratch: Scratch::new(shape, capacity).expect("memory"),
        }
    }

    pub(crate) fn context(&mut self) -> DecodeContext<'_, E> {
        DecodeContext {
            rope: self.rope.as_ref(),
            cache: &mut self.cache,
            scratch: &mut self.scratch,
        }
    }

    /// Stores a row of keys and a row of values.
    pub(crate) fn store(&mut self, k: &[f32], v: &[f32]) {
        let mut new = NewPosition::new(self.cache.shape()).expect("memory");
        new.set(Isa::Scalar, k, v).expect("in range");
        self.cache.append(&new).expect("room");
    }

    /// The keys of one position, of all KV heads.
    pub(crate) fn keys(&self, position: usize) -> Vec<f32> {
        let head_dim = self.cache.shape().head_dim();
        let mut row = vec![f32::NAN; self.cache.shape().n_kv_heads() * head_dim];
        for (kv_head, out) in row.chunks_exact_mut(head_dim).enumerate() {
            self.cache.key(kv_head, position, out).expect("a stored key");
        }
        row
    }

    /// The values of one position, of all KV heads.
    pub(crate) fn values(&self, position: usize) -> Vec<f32> {
        let head_dim = self.cache.shape().head_dim();
        let mut row = vec![f32::NAN; self.cache.shape().n_kv_heads() * head_dim];
        for (kv_head, out) in row.chunks_exact_mut(head_dim).enumerate() {
            self.cache.value(kv_head, position, out).expect("a stored value");
        }
        row
    }

    /// The bits of everything stored: keys and values of every position, in order.
    pub(crate) fn stored(&self) -> Vec<u32> {
        let row = |position| [self.keys(position), self.values(position)].concat();
        (0..self.cache.len()).flat_map(row).map(f32::to_bits).collect()
    }

    /// Decodes into a new vector; the input is also the residual.
    pub(crate) fn decode(
        &mut self,
        layer: &DecodeLayer<'_>,
        runner: &Runner<'_>,
        input: &[f32],
    ) -> Result<Vec<f32>, LayerError> {
        let mut output = vec![f32::NAN; input.len()];
        layer.decode(runner, self.context(), input, Some(input), &mut output)?;
        Ok(output)
    }
}

/// The serial runner of every level of this machine, scalar first.
pub(crate) fn runners() -> impl Iterator<Item = Runner<'static>> {
    let levels: Vec<Isa> = Isa::available().collect();
    ck_testing::run::assert_expected_levels(&levels);
    levels.into_iter().map(Runner::serial)
}

/// The serial runner of the scalar level.
pub(crate) fn scalar() -> Runner<'static> {
    Runner::serial(Isa::Scalar)
}

pub(crate) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}
