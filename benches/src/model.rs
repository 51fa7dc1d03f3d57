//! The models whose layers are measured, with weights that are made up but of the right shapes and sizes.

use anyhow::Result;
use ck_fused::{DecodeLayer, LayerShape, LayerWeights, Norm, Projection, Projections};
use ck_ops::{Pairing, RopeConfig, RopeTable};
use ck_quant::{Format, Matrix};
use ck_testing::generate::Rng;

/// A model whose layers' shape is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Model {
    /// The name.
    pub name: &'static str,
    embed_dim: usize,
    n_heads: usize,
    n_kv_heads: usize,
    head_dim: usize,
    /// How its files pair the elements that RoPE turns.
    pub pairing: Pairing,
}

/// The models.
pub const MODELS: [Model; 5] = [
    Model::new("Qwen2-0.5B", 896, (14, 2), 64, Pairing::SplitHalf),
    Model::new("SmolLM2-135M", 576, (9, 3), 64, Pairing::Interleaved),
    Model::new("Llama-3.2-1B", 2048, (32, 8), 64, Pairing::Interleaved),
    Model::new("Llama-3-8B", 4096, (32, 8), 128, Pairing::Interleaved),
    Model::new("Llama-2-7B", 4096, (32, 32), 128, Pairing::Interleaved),
];

/// The frequency base of every model here; the time does not depend on it.
pub const ROPE_BASE: f64 = 10_000.0;

/// The norm's epsilon.
pub const EPS: f32 = 1e-6;

impl Model {
    const fn new(
        name: &'static str,
        embed_dim: usize,
        (n_heads, n_kv_heads): (usize, usize),
        head_dim: usize,
        pairing: Pairing,
    ) -> Self {
        Self { name, embed_dim, n_heads, n_kv_heads, head_dim, pairing }
    }

    /// The shape of its layers.
    ///
    /// # Panics
    ///
    /// Never: the models above are valid.
    #[must_use]
    pub fn shape(&self) -> LayerShape {
        LayerShape::new(self.embed_dim, self.n_heads, self.n_kv_heads, self.head_dim)
            .expect("a valid shape")
    }

    /// The angles of some positions.
    ///
    /// # Errors
    ///
    /// Memory that is not to be had.
    pub fn rope(&self, positions: usize) -> Result<RopeTable> {
        let config = RopeConfig::new(self.head_dim, ROPE_BASE).with_pairing(self.pairing);
        Ok(RopeTable::new(config, positions)?)
    }

    /// Whether its layers are measured if no model is named; the others are there for their heads.
    #[must_use]
    pub fn has_layer(&self) -> bool {
        self.is_grouped()
    }

    /// Whether several query heads share a key and value head.
    #[must_use]
    pub fn is_grouped(&self) -> bool {
        self.n_heads != self.n_kv_heads
    }
}

/// One projection of a layer: rows, columns and format.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The block format.
    pub format: Format,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Where its bytes begin among those of the layer.
    pub start: usize,
    /// How many bytes they are.
    pub len: usize,
}

/// The made-up weights of a layer, as a file would have them.
pub struct LayerData {
    /// The model.
    pub model: Model,
    /// Q, K, V and O.
    pub parts: [Part; 4],
    /// The bytes of the four matrices, each at a multiple of 64.
    pub bytes: Vec<u8>,
    /// The biases of the four projections.
    pub biases: [Vec<f32>; 4],
    /// The norm's weights.
    pub gamma: Vec<f32>,
    /// The hidden state that is decoded.
    pub hidden: Vec<f32>,
}

impl LayerData {
    /// Weights of a layer of `model`: Q, K and O in Q5_0, V in Q8_0; the same ones every time.
    ///
    /// # Errors
    ///
    /// Never for the models here.
    pub fn new(model: Model) -> Result<Self> {
        let shape = model.shape();
        let (e, q, kv) = (shape.embed_dim(), shape.q_dim(), shape.kv_dim());
        let sizes = [
            (Format::Q5_0, q, e),
            (Format::Q5_0, kv, e),
            (Format::Q8_0, kv, e),
            (Format::Q5_0, e, q),
        ];
        let mut rng = Rng::new(11);
        let mut bytes = Vec::new();
        let mut parts = Vec::new();
        for (format, rows, columns) in sizes {
            // Even numbers whose products with normalized activations have a variance near one.
            let limit = (3.0 / columns as f32).sqrt();
            let values: Vec<f32> =
                (0..rows * columns).map(|_| rng.uniform(-limit, limit)).collect();
            let quantized = format.quantize(&values)?;
            let (start, len) = (bytes.len(), quantized.len());
            parts.push(Part { format, rows, columns, start, len });
            bytes.extend(quantized);
            bytes.resize(bytes.len().next_multiple_of(64), 0);
        }
        let mut row = |len: usize, scale: f32| -> Vec<f32> {
            (0..len).map(|_| scale * rng.normal()).collect()
        };
        let biases = [row(q, 0.1), row(kv, 0.1), row(kv, 0.1), row(e, 0.01)];
        let gamma = row(e, 0.1).into_iter().map(|x| 1.0 + x).collect();
        let hidden = row(e, 1.0);
        let parts = [parts[0], parts[1], parts[2], parts[3]];
        Ok(Self { model, parts, bytes, biases, gamma, hidden })
    }

    /// The layer on `bytes`, which are these or a copy of them.
    ///
    /// # Errors
    ///
    /// Bytes of another layer.
    pub fn layer<'a>(&'a self, bytes: &'a [u8]) -> Result<DecodeLayer<'a>> {
        let projection = |index: usize| -> Result<Projection<'a>> {
            let Part { format, rows, columns, start, len } = self.parts[index];
            let matrix = Matrix::new(format, rows, columns, &bytes[start..start + len])?;
            Ok(Projection::new(matrix).with_bias(&self.biases[index][..]))
        };
        let weights = LayerWeights::new(
            Norm::new(&self.gamma[..], EPS),
            Projections {
                q: projection(0)?,
                k: projection(1)?,
                v: projection(2)?,
                o: projection(3)?,
            },
        );
        Ok(DecodeLayer::new(self.model.shape(), weights)?)
    }

    /// Bytes of the four matrices.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.len).sum()
    }
}
