//! Whole layers of random weights.

use super::{Quants, Rng, Scales, random_row};
use crate::oracle::{Format, HeadNorm, LayerWeights, Projection, Shape};

/// The formats of the four projections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Formats {
    /// Of the query projection.
    pub q: Format,
    /// Of the key projection.
    pub k: Format,
    /// Of the value projection.
    pub v: Format,
    /// Of the output projection.
    pub o: Format,
}

impl Formats {
    /// What the recorded layers have: values in Q8_0, all else in Q5_0.
    pub const RECORDED: Self =
        Self { q: Format::Q5_0, k: Format::Q5_0, v: Format::Q8_0, o: Format::Q5_0 };

    /// All 16 combinations.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let format = |bits: usize, bit: usize| Format::ALL[bits >> bit & 1];
        (0..16)
            .map(|bits| Self {
                q: format(bits, 0),
                k: format(bits, 1),
                v: format(bits, 2),
                o: format(bits, 3),
            })
            .collect()
    }
}

/// Which of the four projections have a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Biases {
    /// The query projection.
    pub q: bool,
    /// The key projection.
    pub k: bool,
    /// The value projection.
    pub v: bool,
    /// The output projection.
    pub o: bool,
}

impl Biases {
    /// None, as Llama.
    pub const NONE: Self = Self { q: false, k: false, v: false, o: false };
    /// Queries, keys and values, as Qwen2.
    pub const QKV: Self = Self { q: true, k: true, v: true, o: false };
    /// All four.
    pub const ALL: Self = Self { q: true, k: true, v: true, o: true };
}

/// Random weights of a shape that keep a hidden state of ordinary size at ordinary size.
///
/// Every quant is used, -128 included. Scales are of both signs and such that a projected element of a
/// normalized row has a magnitude near 1. Gamma is near 1, biases are near 2, epsilon is 1e-5.
///
/// ```
/// use ck_testing::generate::{Biases, Formats, random_layer};
/// use ck_testing::oracle::Shape;
/// let shape = Shape { embed_dim: 64, n_heads: 2, n_kv_heads: 1, head_dim: 32 };
/// let weights = random_layer(1, shape, Formats::RECORDED, Biases::QKV);
/// assert_eq!(weights.q.rows(), 64);
/// assert_eq!(weights, random_layer(1, shape, Formats::RECORDED, Biases::QKV));
/// ```
///
/// # Panics
///
/// If `embed_dim` or `n_heads * head_dim` is no multiple of 32.
#[must_use]
pub fn random_layer(seed: u64, shape: Shape, formats: Formats, biases: Biases) -> LayerWeights {
    let mut rng = Rng::new(seed);
    let gamma = (0..shape.embed_dim).map(|_| 1.0 + 0.3 * rng.normal()).collect();
    let (embed, q_width, kv_width) = (shape.embed_dim, shape.q_width(), shape.kv_width());
    LayerWeights {
        shape,
        gamma,
        eps: 1e-5,
        q: projection(&mut rng, formats.q, q_width, embed, biases.q),
        k: projection(&mut rng, formats.k, kv_width, embed, biases.k),
        v: projection(&mut rng, formats.v, kv_width, embed, biases.v),
        o: projection(&mut rng, formats.o, embed, q_width, biases.o),
        q_norm: None,
        k_norm: None,
    }
}

/// The same layer with random norms of its query heads and key heads: gamma near 1, epsilons of their own.
#[must_use]
pub fn with_head_norms(seed: u64, weights: LayerWeights) -> LayerWeights {
    let mut rng = Rng::new(seed);
    let mut norm = |eps| {
        let gamma = (0..weights.shape.head_dim).map(|_| 1.0 + 0.3 * rng.normal()).collect();
        Some(HeadNorm { gamma, eps })
    };
    let (q_norm, k_norm) = (norm(1e-6), norm(2e-5));
    LayerWeights { q_norm, k_norm, ..weights }
}

fn projection(
    rng: &mut Rng,
    format: Format,
    rows: usize,
    columns: usize,
    biased: bool,
) -> Projection {
    let row_bytes = format.row_bytes(columns);
    let blocks = row_bytes / format.block_bytes();
    let mut bytes = Vec::with_capacity(rows * row_bytes);
    for _ in 0..rows {
        bytes.extend(random_row(format, rng, blocks, Scales::Weights, Quants::Any));
    }
    rescale(format, columns, &mut bytes);
    let bias = biased.then(|| (0..rows).map(|_| 2.0 * rng.normal()).collect());
    Projection { format, columns, bytes, bias }
}

/// Multiplies the scales so that a row times a row of ones of random signs has a magnitude near 1.
fn rescale(format: Format, columns: usize, bytes: &mut [u8]) {
    let (low, high) = format.quant_range();
    // Quants spread evenly over the range, scales over 0.001 to 0.1: root mean squares of both.
    let quant = f32::from(high.abs_diff(low)) / 12f32.sqrt();
    let scale = 0.058;
    let factor = 1.0 / (quant * scale * (columns as f32).sqrt());
    for block in bytes.chunks_exact_mut(format.block_bytes()) {
        let stored = half::f16::from_le_bytes([block[0], block[1]]);
        let scaled = half::f16::from_f32(stored.to_f32() * factor);
        block[..2].copy_from_slice(&scaled.to_le_bytes());
    }
}
