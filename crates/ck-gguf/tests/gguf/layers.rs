//! Layers read from files: what is right, what is refused, and what each refusal says.

use crate::files::{LayerFile, SMALL, golden, refusal, refused, with_layer};
use ck_fused::{LayerShape, ProjectionMatrix};
use ck_gguf::{AttentionLayer, Error, GgufFile, MappedFile, TensorType, Value};
use ck_ops::Pairing;
use ck_quant::Format;

#[test]
fn recordings_are_read() {
    let smollm2 = LayerShape::new(576, 9, 3, 64).expect("a shape");
    let qwen2 = LayerShape::new(896, 14, 2, 64).expect("a shape");
    let cases = [
        ("smollm2-layer0.gguf", 0, smollm2, 1e5, 1e-5, Pairing::Interleaved),
        ("smollm2-layer4.gguf", 4, smollm2, 1e5, 1e-5, Pairing::Interleaved),
        ("qwen2-random-layer1.gguf", 1, qwen2, 1e6, 1e-6, Pairing::SplitHalf),
    ];
    for (name, number, shape, base, eps, pairing) in cases {
        // SAFETY: the recordings are part of the source, which nobody changes while tests run.
        let bytes = unsafe { MappedFile::open(golden(name)) }.expect("the recording");
        let file = GgufFile::parse(&bytes).expect(name);
        let recorded: usize = file.metadata().require("golden.layer").expect(name);
        assert_eq!(recorded, number, "{name}");
        let layer = AttentionLayer::read(&file, number).expect(name);
        assert_eq!(layer.layer.shape(), shape, "{name}");
        let weights = layer.layer.weights();
        assert_eq!(weights.norm.eps, eps, "{name}");
        assert_eq!((layer.rope.base, layer.rope.rot_dim), (base, 64), "{name}");
        assert_eq!(layer.rope.pairing, pairing, "{name}");
        assert_eq!(layer.warnings, [], "{name}");
        for projection in [&weights.q, &weights.k, &weights.o] {
            assert_eq!(projection.weights().format(), Format::Q5_0, "{name}");
        }
        assert_eq!(weights.v.weights().format(), Format::Q8_0, "{name}");
        let has_bias = pairing == Pairing::SplitHalf;
        for projection in [&weights.q, &weights.k, &weights.v] {
            assert_eq!(projection.bias.is_some(), has_bias, "{name}");
        }
        assert!(weights.o.bias.is_none(), "{name}");
        // Of the layers that the model had the file holds one.
        let architecture: &str = file.metadata().require("general.architecture").unwrap();
        let key = format!("{architecture}.block_count");
        let layers: usize = file.metadata().require(&key).unwrap();
        for other in (0..layers).filter(|other| *other != number) {
            let missing = format!("blk.{other}.attn_k.weight");
            let error = AttentionLayer::read(&file, other).expect_err("there is one layer");
            assert_error!(error, Error::MissingTensor { .. }, &missing);
        }
        let beyond = AttentionLayer::read(&file, layers).expect_err("there are so many");
        let (layer, below) = (format!("layer {layers}"), format!("below {layers}"));
        assert_error!(beyond, Error::NoSuchLayer { .. }, &layer, &below);
    }
}

#[test]
fn weights_are_the_bytes_of_the_file() {
    let mapped = golden("smollm2-layer0.gguf");
    // SAFETY: the recordings are part of the source, which nobody changes while tests run.
    let bytes = unsafe { MappedFile::open(mapped) }.expect("the recording");
    let file = GgufFile::parse(&bytes).expect("the recording");
    let layer = AttentionLayer::read(&file, 0).expect("the layer");
    let ProjectionMatrix::Rows(weights) = layer.layer.weights().k.matrix else {
        panic!("a layer from a file is not packed");
    };
    assert_eq!((weights.rows(), weights.columns()), (192, 576));
    let tensor = file.tensor("blk.0.attn_k.weight").expect("the tensor");
    assert_eq!(weights.bytes().as_ptr_range(), tensor.bytes().as_ptr_range(), "a copy");
    assert!(
        bytes.as_ptr_range().contains(&weights.bytes().as_ptr()),
        "a copy, not the mapped file"
    );
}

#[test]
fn a_missing_file_is_named() {
    let path = golden("no-such-file.gguf");
    // SAFETY: there is no such file.
    let error = unsafe { MappedFile::open(path) }.expect_err("there is no such file");
    assert_error!(error, Error::Map { .. }, "no-such-file.gguf");
}

// Case B21: no silent default.
#[test]
fn the_epsilon_is_that_of_the_file() {
    const KEY: &str = "qwen2.attention.layer_norm_rms_epsilon";
    assert_error!(refused(|file| file.remove_key(KEY)), Error::MissingKey { .. }, KEY);
    for wrong in [Value::F32(-1e-6), Value::F32(f32::NAN), Value::F64(f64::INFINITY)] {
        assert_error!(refused(|file| file.set(KEY, wrong)), Error::BadValue { .. }, KEY, "f");
    }
    for (value, expected) in
        [(Value::F32(1e-5), 1e-5), (Value::F64(1e-5), 1e-5), (Value::U32(0), 0.0)]
    {
        let mut file = LayerFile::new("qwen2", SMALL);
        file.set(KEY, value);
        with_layer(&file, |layer| assert_eq!(layer.layer.weights().norm.eps, expected));
    }
}

// Case B28: shapes that have no query heads per KV head.
#[test]
fn heads_divide_evenly() {
    const HEADS: &str = "qwen2.attention.head_count";
    const KV_HEADS: &str = "qwen2.attention.head_count_kv";
    for (heads, kv_heads) in [(15, 2), (2, 14), (14, 0), (0, 2), (0, 0)] {
        let error = refused(|file| {
            file.set(HEADS, Value::U32(heads));
            file.set(KV_HEADS, Value::U32(kv_heads));
        });
        assert_error!(error, Error::BadValue { .. }, "attention.head_count");
    }
    // As many KV heads as heads where the file does not say; the key matrix then shows the truth.
    let error = refused(|file| file.remove_key(KV_HEADS));
    assert_error!(error, Error::BadShape { .. }, "blk.0.attn_q.weight");
    let mut file = LayerFile::new("qwen2", (96, 4, 4, 32));
    file.remove_key(KV_HEADS);
    with_layer(&file, |layer| assert_eq!(layer.layer.shape().n_kv_heads(), 4));

    let error = refused(|file| file.set(KV_HEADS, Value::String("two")));
    assert_error!(error, Error::BadValue { .. }, KV_HEADS, "string \"two\"", "integer");
    let error = refused(|file| file.set(HEADS, Value::U64(1 << 62)));
    assert_error!(error, Error::Layer { .. } | Error::BadShape { .. }, "head");
}

#[test]
fn the_head_dimension_comes_from_the_keys() {
    const KEY_LENGTH: &str = "qwen2.attention.key_length";
    const VALUE_LENGTH: &str = "qwen2.attention.value_length";
    let mut file = LayerFile::new("qwen2", SMALL);
    with_layer(&file, |layer| assert_eq!(layer.layer.shape().head_dim(), 32));
    file.set(KEY_LENGTH, Value::U32(32));
    file.set(VALUE_LENGTH, Value::U32(32));
    with_layer(&file, |layer| assert_eq!(layer.layer.shape().head_dim(), 32));

    let error = refused(|file| file.set(KEY_LENGTH, Value::U32(64)));
    assert_error!(error, Error::BadShape { .. }, "blk.0.attn_q.weight", "[96, 256]");
    // Nothing is made for a head dimension that no tensor has.
    for head_dim in [0x2F00_0010, 1 << 55] {
        let error = refused(|file| file.set(KEY_LENGTH, Value::U64(head_dim)));
        assert_error!(error, Error::BadShape { .. }, "blk.0.attn_q.weight");
    }
    let error = refused(|file| file.set(KEY_LENGTH, Value::U32(0)));
    assert_error!(error, Error::BadValue { .. }, KEY_LENGTH);
    let error = refused(|file| file.set(VALUE_LENGTH, Value::U32(16)));
    assert_error!(error, Error::BadValue { .. }, VALUE_LENGTH, "u32 16", "32");
    let mut odd = LayerFile::new("qwen2", (96, 6, 3, 32));
    odd.remove_tensor("blk.0.attn_k.weight");
    odd.add_matrix("blk.0.attn_k.weight", [96, 64], TensorType::Q5_0);
    assert_error!(refusal(&odd), Error::BadShape { .. }, "blk.0.attn_k.weight", "a multiple of 3");
}

#[test]
fn every_tensor_of_the_layer_is_needed() {
    for short in ["norm", "q", "k", "v", "output"] {
        let name = format!("blk.0.attn_{short}.weight");
        let error = refused(|file| file.remove_tensor(&name));
        assert_error!(error, Error::MissingTensor { .. }, &name);
    }
    for suffix in ["embedding_length", "attention.head_count"] {
        let key = format!("qwen2.{suffix}");
        assert_error!(refused(|file| file.remove_key(&key)), Error::MissingKey { .. }, &key);
    }
    let error = refused(|file| file.set("qwen2.embedding_length", Value::U32(64)));
    assert_error!(error, Error::BadShape { .. }, "blk.0.attn_k.weight", "[64, ");
}

// Case B56: a layer needs neither output nor embedding, and does not mind them.
#[test]
fn a_layer_needs_no_output_matrix() {
    let mut file = LayerFile::new("qwen2", SMALL);
    with_layer(&file, |_| ());
    file.add_matrix("token_embd.weight", [96, 10], TensorType::Q8_0);
    with_layer(&file, |_| ());
    file.add_matrix("output.weight", [96, 10], TensorType::F16);
    with_layer(&file, |_| ());
}

#[test]
fn the_norm_is_as_wide_as_the_embedding() {
    const NORM: &str = "blk.0.attn_norm.weight";
    for dims in [vec![95], vec![97], vec![96, 2]] {
        let error = refused(|file| {
            file.remove_tensor(NORM);
            file.add_f32(NORM, &vec![1.0; dims.iter().product()]);
            file.tensor(NORM).dims = dims.clone();
        });
        assert_error!(error, Error::BadShape { .. }, NORM, "[96]", &format!("{dims:?}"));
    }
}
