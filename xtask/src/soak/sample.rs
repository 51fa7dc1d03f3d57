//! Layers of random weights.

use anyhow::Result;
use ck_fused::{DecodeLayer, LayerShape, LayerWeights, Norm, Projection, Projections};
use ck_ops::{Pairing, RopeConfig, RopeTable};
use ck_quant::{Format, Matrix};
use ck_testing::generate::{Biases, Formats, random_layer};
use ck_testing::oracle::{self, Shape};

/// The longest context of any pair.
pub(super) const POSITIONS: usize = 700;

/// The weights of a layer, and its rotation.
pub(super) struct Sample {
    weights: oracle::LayerWeights,
    /// None for a layer that does not rotate.
    pub(super) rope: Option<RopeTable>,
}

impl Sample {
    /// Layers of every kind: head dimensions, groups of heads, formats, biases, rotations.
    pub(super) fn all() -> Vec<Self> {
        let shape = |embed_dim, n_heads, n_kv_heads, head_dim| Shape {
            embed_dim,
            n_heads,
            n_kv_heads,
            head_dim,
        };
        let all_q8_0 = Formats {
            q: oracle::Format::Q8_0,
            k: oracle::Format::Q8_0,
            v: oracle::Format::Q5_0,
            o: oracle::Format::Q8_0,
        };
        [
            (shape(96, 4, 2, 32), Formats::RECORDED, Biases::ALL, Some((Pairing::SplitHalf, 32))),
            (shape(64, 3, 1, 64), all_q8_0, Biases::NONE, Some((Pairing::Interleaved, 64))),
            (shape(160, 5, 5, 96), Formats::RECORDED, Biases::NONE, Some((Pairing::SplitHalf, 24))),
            (shape(128, 8, 1, 32), all_q8_0, Biases::QKV, None),
            // Qwen2-0.5B.
            (shape(896, 14, 2, 64), Formats::RECORDED, Biases::QKV, Some((Pairing::SplitHalf, 64))),
        ]
        .into_iter()
        .enumerate()
        .map(|(seed, (shape, formats, biases, rotation))| {
            let rope = rotation.map(|(pairing, width)| {
                let config = RopeConfig::new(shape.head_dim, 1e4).with_rot_dim(width);
                RopeTable::new(config.with_pairing(pairing), POSITIONS).expect("a good rotation")
            });
            Self { weights: random_layer(seed as u64, shape, formats, biases), rope }
        })
        .collect()
    }

    /// The layer, with its weights borrowed.
    pub(super) fn layer(&self) -> Result<DecodeLayer<'_>> {
        let Shape { embed_dim, n_heads, n_kv_heads, head_dim } = self.weights.shape;
        let shape = LayerShape::new(embed_dim, n_heads, n_kv_heads, head_dim)?;
        let weights = LayerWeights::new(
            Norm::new(&self.weights.gamma[..], self.weights.eps),
            Projections {
                q: projection(&self.weights.q)?,
                k: projection(&self.weights.k)?,
                v: projection(&self.weights.v)?,
                o: projection(&self.weights.o)?,
            },
        );
        Ok(DecodeLayer::new(shape, weights)?)
    }
}

fn projection(projection: &oracle::Projection) -> Result<Projection<'_>> {
    let format = match projection.format {
        oracle::Format::Q5_0 => Format::Q5_0,
        oracle::Format::Q8_0 => Format::Q8_0,
    };
    let (rows, columns) = (projection.rows(), projection.columns);
    let projected = Projection::new(Matrix::new(format, rows, columns, &projection.bytes)?);
    Ok(match &projection.bias {
        Some(bias) => projected.with_bias(&bias[..]),
        None => projected,
    })
}
