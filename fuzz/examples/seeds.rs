//! Writes the seeds of every target to `corpus/`: `cargo run --example seeds`. The same bytes every time.

use ck_gguf::{GgufWriter, TensorType, Value};
use ck_isa::Isa;
use ck_ops::{CacheElement, CacheShape, KvCache, NewPosition, Q8_0};
use ck_testing::generate::{
    Biases, Formats, Quants, Rng, Scales, Values, random_layer, random_row, with_head_norms,
};
use ck_testing::oracle::{Format, LayerWeights, Projection, Shape};
use half::f16;
use std::fs;
use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let targets = [
        ("blocks", blocks()),
        ("cache", operations(&[40, 200, 600])),
        ("gguf", files()),
        ("layer", operations(&[60, 120, 200, 300, 400, 500])),
        ("quantizers", rows()),
        ("saved", saved()),
    ];
    for (name, seeds) in targets {
        let folder = corpus.join(name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}

/// Blocks of both formats with scales and quants of several kinds.
fn blocks() -> Vec<Vec<u8>> {
    let mut rng = Rng::new(1);
    let mut seeds = Vec::new();
    for (number, format) in Format::ALL.into_iter().enumerate() {
        for (scales, quants) in
            [(Scales::Weights, Quants::Any), (Scales::AnyFinite, Quants::ALL[1])]
        {
            let (rows, per_row) = (17, 3);
            let mut seed = vec![number as u8, rows as u8, per_row as u8, 5, 16, 9];
            seed.extend(random_row(format, &mut rng, rows * per_row, scales, quants));
            seed.extend(random_row(Format::Q8_0, &mut rng, per_row, scales, quants));
            seeds.push(seed);
        }
    }
    seeds
}

/// Floats of every kind, and some that are refused.
fn rows() -> Vec<Vec<u8>> {
    let mut rng = Rng::new(2);
    let bytes = |row: Vec<f32>| row.into_iter().flat_map(f32::to_le_bytes).collect();
    let mut seeds: Vec<Vec<u8>> =
        Values::ALL.into_iter().map(|kind| bytes(kind.row(&mut rng, 96))).collect();
    let mut row = Values::Normal.row(&mut rng, 64);
    row[40] = f32::NAN;
    seeds.push(bytes(row));
    seeds.push(bytes(Values::Normal.row(&mut rng, 33)));
    seeds
}

/// Random bytes, which are read as operations and choices.
fn operations(lengths: &[usize]) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(3);
    lengths.iter().map(|&len| (0..len).map(|_| rng.next_u64() as u8).collect()).collect()
}

/// A small cache of every element type, as it is and as changes of the target's own.
fn saved() -> Vec<Vec<u8>> {
    let shape = CacheShape::new(1, 32).expect("a shape");
    let choices = |element: u8| vec![element, 0, 4, 0, 1];
    let mut seeds = vec![
        [choices(0), cache::<f32>(shape)].concat(),
        [choices(1), cache::<f16>(shape)].concat(),
        [choices(2), cache::<Q8_0>(shape)].concat(),
    ];
    seeds.extend(operations(&[30, 60]));
    seeds
}

fn cache<E: CacheElement>(shape: CacheShape) -> Vec<u8> {
    let mut cache = KvCache::<E>::with_capacity(shape, 2).expect("memory");
    let (mut new, mut rng) = (NewPosition::new(shape).expect("memory"), Rng::new(6));
    for _ in 0..2 {
        let row = Values::Normal.row(&mut rng, 32);
        new.set(Isa::detect(), &row, &row).expect("finite");
        cache.append(&new).expect("room");
    }
    let mut bytes = Vec::new();
    cache.write_to(&mut bytes).expect("memory");
    bytes
}

/// Small files of every architecture, their rotations scaled in every way, and one without tensors.
fn files() -> Vec<Vec<u8>> {
    let shape = Shape { embed_dim: 32, n_heads: 2, n_kv_heads: 1, head_dim: 16 };
    let llama = random_layer(4, shape, Formats::RECORDED, Biases::NONE);
    let qwen2 = random_layer(5, shape, Formats::RECORDED, Biases::QKV);
    let mut plain = GgufWriter::new();
    plain.value("a", Value::U64(7)).value("b", Value::String("text")).value("c", Value::Bool(true));
    plain.values("d", &[Value::F32(0.5), Value::F32(1.5)]).expect("elements of one type");
    let finish = |writer: GgufWriter| writer.finish().expect("a good file");
    let qwen3 = with_head_norms(6, llama.clone());
    let mut files = vec![file("llama", &llama), file("qwen2", &qwen2), plain];

    let mut scaled = file("llama", &llama);
    scaled.value("llama.rope.scaling.factor", Value::F32(8.0));
    scaled.value("llama.attention.scale", Value::F32(0.25));
    scaled
        .f32_tensor("rope_freqs.weight", &[8], &[1.0, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0])
        .expect("a vector");
    files.push(scaled);

    let mut yarn = file("qwen3", &qwen3);
    yarn.value("qwen3.rope.scaling.type", Value::String("yarn"));
    for (suffix, number) in [
        ("factor", 4.0),
        ("attn_factor", 1.5),
        ("yarn_ext_factor", 1.0),
        ("yarn_beta_fast", 32.0),
        ("yarn_beta_slow", 1.0),
        ("yarn_log_multiplier", 0.1),
    ] {
        yarn.value(&format!("qwen3.rope.scaling.{suffix}"), Value::F32(number));
    }
    yarn.value("qwen3.rope.scaling.original_context_length", Value::U32(64));
    files.push(yarn);

    for (architecture, weights) in [("gemma2", &llama), ("gemma3", &qwen3)] {
        let mut gemma = file(architecture, weights);
        let key = |suffix: &str| format!("{architecture}.{suffix}");
        gemma.value(&key("block_count"), Value::U32(46));
        gemma.value(&key("attention.sliding_window"), Value::U32(4));
        gemma.value(&key("rope.freq_base_swa"), Value::F32(1e4));
        gemma.value(&key("attn_logit_softcapping"), Value::F32(30.0));
        let name = "blk.0.post_attention_norm.weight";
        gemma.f32_tensor(name, &[shape.embed_dim], &weights.gamma).expect("a vector");
        files.push(gemma);
    }
    files.into_iter().map(finish).collect()
}

fn file(architecture: &str, weights: &LayerWeights) -> GgufWriter {
    let Shape { embed_dim, n_heads, n_kv_heads, head_dim } = weights.shape;
    let mut writer = GgufWriter::new();
    let key = |suffix: &str| format!("{architecture}.{suffix}");
    writer.value("general.architecture", Value::String(architecture));
    for (suffix, number) in [
        ("embedding_length", embed_dim),
        ("attention.head_count", n_heads),
        ("attention.head_count_kv", n_kv_heads),
        ("attention.key_length", head_dim),
        ("rope.dimension_count", head_dim),
    ] {
        writer.value(&key(suffix), Value::U32(number as u32));
    }
    writer.value(&key("attention.layer_norm_rms_epsilon"), Value::F32(1e-5));
    writer.value(&key("rope.freq_base"), Value::F32(1e4));
    writer.f32_tensor("blk.0.attn_norm.weight", &[embed_dim], &weights.gamma).expect("a vector");
    for (name, projection) in
        [("q", &weights.q), ("k", &weights.k), ("v", &weights.v), ("output", &weights.o)]
    {
        add_projection(&mut writer, name, projection);
    }
    for (name, norm) in [("q_norm", &weights.q_norm), ("k_norm", &weights.k_norm)] {
        if let Some(norm) = norm {
            let name = format!("blk.0.attn_{name}.weight");
            writer.f32_tensor(&name, &[head_dim], &norm.gamma).expect("a vector");
        }
    }
    writer
}

fn add_projection(writer: &mut GgufWriter, name: &str, projection: &Projection) {
    let tensor_type = match projection.format {
        Format::Q5_0 => TensorType::Q5_0,
        Format::Q8_0 => TensorType::Q8_0,
    };
    let dims = [projection.columns, projection.rows()];
    let matrix = format!("blk.0.attn_{name}.weight");
    writer.tensor(&matrix, &dims, tensor_type, &projection.bytes).expect("a matrix");
    if let Some(bias) = &projection.bias {
        let name = format!("blk.0.attn_{name}.bias");
        writer.f32_tensor(&name, &[bias.len()], bias).expect("a vector");
    }
}
