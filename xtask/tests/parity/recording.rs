//! Recordings of random layers, made by the oracle.

use ck_gguf::{GgufWriter, TensorType, Value};
use ck_testing::generate::{Biases, Formats, Rng, Values, random_layer};
use ck_testing::oracle::{
    CacheRounding, Format, Layer, LayerTrace, LayerWeights, Pairing, Projection, Rope, Shape,
    narrow,
};
use std::path::{Path, PathBuf};

/// Every stage of every token of a random layer.
#[derive(Clone)]
pub(crate) struct Recording {
    pub(crate) weights: LayerWeights,
    pub(crate) rope: Rope,
    pub(crate) n_tokens: usize,
    /// The recorded stages by name: width and rows.
    pub(crate) stages: Vec<(&'static str, usize, Vec<f32>)>,
}

impl Recording {
    /// What the oracle computes in `n_tokens` tokens of a random layer.
    pub(crate) fn new(shape: Shape, rope: Rope, biases: Biases, n_tokens: usize) -> Self {
        let weights = random_layer(1, shape, Formats::RECORDED, biases);
        let layer = Layer::new(weights.clone(), rope, CacheRounding::None);
        let mut layer = layer.expect("a good shape");
        let mut rng = Rng::new(2);
        let mut input = Vec::new();
        let mut traces = Vec::new();
        for _ in 0..n_tokens {
            let row = Values::Normal.row(&mut rng, shape.embed_dim);
            traces.push(layer.step(&row, Some(&row)).expect("finite"));
            input.extend(row);
        }
        let stage = |part: fn(&LayerTrace) -> &[f64]| -> Vec<f32> {
            traces.iter().flat_map(|trace| narrow(part(trace))).collect()
        };
        let (embed, q, kv) = (shape.embed_dim, shape.q_width(), shape.kv_width());
        let stages = vec![
            ("norm", embed, stage(|trace| &trace.norm)),
            ("q", q, stage(|trace| &trace.q)),
            ("k", kv, stage(|trace| &trace.k)),
            ("v", kv, stage(|trace| &trace.v)),
            ("attn", q, stage(|trace| &trace.attn)),
            ("output", embed, stage(|trace| &trace.output)),
            ("input", embed, input),
        ];
        Self { weights, rope, n_tokens, stages }
    }

    /// A short recording of a small layer.
    pub(crate) fn small() -> Self {
        let shape = Shape { embed_dim: 64, n_heads: 4, n_kv_heads: 2, head_dim: 32 };
        let rope = Rope::new(Pairing::SplitHalf, 32, 1e6);
        Self::new(shape, rope, Biases::QKV, 5)
    }

    /// The rows of a stage.
    pub(crate) fn stage(&mut self, name: &str) -> &mut Vec<f32> {
        let stage = self.stages.iter_mut().find(|(stage, ..)| *stage == name);
        &mut stage.expect("a recorded stage").2
    }

    /// Drops a stage.
    pub(crate) fn remove(&mut self, name: &str) {
        self.stages.retain(|(stage, ..)| *stage != name);
    }

    /// The bytes of the file.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let (architecture, style) = match self.rope.pairing {
            Pairing::SplitHalf => ("qwen2", "split_half"),
            Pairing::Interleaved => ("llama", "interleaved"),
        };
        let shape = self.weights.shape;
        let mut file = GgufWriter::new();
        file.value("general.architecture", Value::String(architecture));
        let number = |number: usize| Value::U32(number.try_into().expect("a small number"));
        for (suffix, value) in [
            ("embedding_length", number(shape.embed_dim)),
            ("attention.head_count", number(shape.n_heads)),
            ("attention.head_count_kv", number(shape.n_kv_heads)),
            ("attention.layer_norm_rms_epsilon", Value::F32(self.weights.eps)),
            ("rope.freq_base", Value::F32(self.rope.base as f32)),
            ("rope.dimension_count", number(self.rope.width)),
        ] {
            file.value(&format!("{architecture}.{suffix}"), value);
        }
        file.value("golden.layer", Value::U32(3));
        file.value("golden.n_tokens", number(self.n_tokens));
        file.value("golden.rope_style", Value::String(style));

        let weights = &self.weights;
        file.f32_tensor("blk.3.attn_norm.weight", &[shape.embed_dim], &weights.gamma)
            .expect("fits");
        for (name, projection) in
            [("q", &weights.q), ("k", &weights.k), ("v", &weights.v), ("output", &weights.o)]
        {
            add_projection(&mut file, &format!("blk.3.attn_{name}"), projection);
        }
        for (name, width, rows) in &self.stages {
            let dims = [*width, rows.len() / width];
            file.f32_tensor(&format!("golden.{name}"), &dims, rows).expect("whole rows");
        }
        file.finish().expect("a good file")
    }

    /// Writes the file and says where it is.
    pub(crate) fn write(&self, name: &str) -> PathBuf {
        write(name, &self.to_bytes())
    }
}

fn add_projection(file: &mut GgufWriter, name: &str, projection: &Projection) {
    let tensor_type = match projection.format {
        Format::Q5_0 => TensorType::Q5_0,
        Format::Q8_0 => TensorType::Q8_0,
    };
    let rows = projection.rows();
    let dims = [projection.columns, rows];
    file.tensor(&format!("{name}.weight"), &dims, tensor_type, &projection.bytes).expect("fits");
    if let Some(bias) = &projection.bias {
        file.f32_tensor(&format!("{name}.bias"), &[rows], bias).expect("fits");
    }
}

/// Writes a file for the tests into cargo's folder for them.
pub(crate) fn write(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).expect("a writable folder");
    path
}
