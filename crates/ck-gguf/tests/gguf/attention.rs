//! Attentions that are another than the plain one: scales, soft caps, windows, and what is refused.

use crate::files::{LayerFile, SMALL, refusal, refused, with_layer};
use ck_gguf::{AttentionLayer, Error, GgufFile, TensorType, Value};
use ck_ops::{Pairing, RopeScaling};

/// A file of several layers.
fn model(architecture: &'static str, layers: usize) -> LayerFile {
    let mut file = LayerFile::new(architecture, SMALL);
    for layer in 1..layers {
        file.add_layer(layer, SMALL);
        file.add_others(layer, SMALL);
    }
    file
}

/// What `part` sees in each of a file's layers.
fn layers<R>(file: &LayerFile, layers: usize, part: impl Fn(&AttentionLayer<'_>) -> R) -> Vec<R> {
    let bytes = file.bytes();
    let file = GgufFile::parse(&bytes).expect("the file opens");
    let layer = |number| AttentionLayer::read(&file, number).expect("the layer is right");
    (0..layers).map(|number| part(&layer(number))).collect()
}

/// The windows of a file's first four layers.
fn windows(file: &LayerFile) -> Vec<Option<usize>> {
    layers(file, 4, |layer| layer.layer.attention().window())
}

#[test]
fn a_score_scale_is_read() {
    for architecture in ["llama", "qwen2", "qwen3", "gemma2", "gemma3"] {
        let mut file = LayerFile::new(architecture, SMALL);
        let key = format!("{architecture}.attention.scale");
        let default = (1.0 / 32_f64.sqrt()) as f32;
        with_layer(&file, |layer| assert_eq!(layer.layer.attention().scale(), default));
        file.set(&key, Value::F32(0.0));
        with_layer(&file, |layer| assert_eq!(layer.layer.attention().scale(), default));
        file.set(&key, Value::F32(0.25));
        with_layer(&file, |layer| assert_eq!(layer.layer.attention().scale(), 0.25));
    }
}

// The models that divide by the embedding length per head: 96 / 4.
#[test]
fn the_largest_gemmas_have_another_scale() {
    for (architecture, layers) in [("gemma2", 46), ("gemma3", 62)] {
        let mut file = LayerFile::new(architecture, SMALL);
        let key = format!("{architecture}.block_count");
        file.set(&key, Value::U32(layers));
        let scale = (1.0 / 24_f64.sqrt()) as f32;
        with_layer(&file, |layer| assert_eq!(layer.layer.attention().scale(), scale));
        file.remove_key(&key);
        assert_error!(refusal(&file), Error::MissingKey { .. }, &key);
    }
}

#[test]
fn a_soft_cap_is_read() {
    let mut file = LayerFile::new("qwen2", SMALL);
    with_layer(&file, |layer| assert_eq!(layer.layer.attention().soft_cap(), None));
    for (cap, expected) in [(30.0, Some(30.0)), (0.0, None)] {
        file.set("qwen2.attn_logit_softcapping", Value::F32(cap));
        with_layer(&file, |layer| assert_eq!(layer.layer.attention().soft_cap(), expected));
    }
    let mut file = LayerFile::new("gemma2", SMALL);
    with_layer(&file, |layer| assert_eq!(layer.layer.attention().soft_cap(), Some(50.0)));
    for (cap, expected) in [(30.0, Some(30.0)), (0.0, None)] {
        file.set("gemma2.attn_logit_softcapping", Value::F32(cap));
        with_layer(&file, |layer| assert_eq!(layer.layer.attention().soft_cap(), expected));
    }
}

#[test]
fn layers_of_gemma2_take_turns() {
    let mut file = model("gemma2", 4);
    assert_eq!(windows(&file), [Some(4096), None, Some(4096), None]);
    file.set("gemma2.attention.sliding_window", Value::U32(512));
    assert_eq!(windows(&file), [Some(512), None, Some(512), None]);
    for (period, expected) in [(0, [true; 4]), (1, [false; 4]), (3, [true, true, false, true])] {
        file.set("gemma2.attention.sliding_window_pattern", Value::U32(period));
        assert_eq!(windows(&file), expected.map(|slides| slides.then_some(512)), "{period}");
    }
    file.set("gemma2.attention.sliding_window", Value::U32(0));
    assert_eq!(windows(&file), [None; 4]);
}

#[test]
fn the_norm_of_gemma2s_result_is_handed_out() {
    const NAME: &str = "blk.0.post_attention_norm.weight";
    let mut file = LayerFile::new("gemma2", SMALL);
    with_layer(&file, |layer| {
        let norm = layer.post_norm.expect("Gemma has one");
        assert_eq!((&norm.gamma[..], norm.eps), (&[1.5; 96][..], 1e-6));
    });
    with_layer(&LayerFile::new("qwen2", SMALL), |layer| assert!(layer.post_norm.is_none()));
    let error = refused(|file| file.add_f32(NAME, &[1.0; 96]));
    assert_error!(error, Error::UnsupportedFeature { .. }, NAME);
    file.tensor(NAME).dims = vec![48, 2];
    assert_error!(refusal(&file), Error::BadShape { .. }, NAME);
    file.remove_tensor(NAME);
    assert_error!(refusal(&file), Error::MissingTensor { .. }, NAME);
}

#[test]
fn windows_of_unknown_layers_are_refused() {
    for architecture in ["llama", "qwen2"] {
        let key = format!("{architecture}.attention.sliding_window");
        let mut file = LayerFile::new(architecture, SMALL);
        file.set(&key, Value::U32(0));
        with_layer(&file, |layer| assert_eq!(layer.layer.attention().window(), None));
        file.set(&key, Value::U32(4096));
        let error = refusal(&file);
        assert_error!(error, Error::UnsupportedFeature { .. }, &key, "unknown layers");
    }
}

#[test]
fn scalings_and_windows_do_not_go_together() {
    let mut file = LayerFile::new("gemma2", SMALL);
    file.set("gemma2.rope.scaling.type", Value::String("yarn"));
    let error = refusal(&file);
    assert_error!(error, Error::UnsupportedFeature { .. }, "gemma2.rope.scaling.type");
    let mut file = LayerFile::new("gemma2", SMALL);
    file.add_f32("rope_freqs.weight", &[1.0; 16]);
    let error = refusal(&file);
    assert_error!(error, Error::UnsupportedFeature { .. }, "rope_freqs.weight");
    let mut file = model("gemma2", 2);
    file.set("gemma2.rope.freq_base_swa", Value::F32(1e4));
    assert_eq!(layers(&file, 2, |layer| layer.rope.base), [1e4, 1e6]);
}

// Five layers with a window, then one that attends to everything; only the latter rotates for a long context.
#[test]
fn layers_of_gemma3_take_turns() {
    let mut file = model("gemma3", 7);
    let by_eight = RopeScaling::Linear { factor: 8.0 };
    file.set("gemma3.rope.scaling.factor", Value::F32(8.0));
    let rotations = |file: &LayerFile| {
        layers(file, 7, |layer| {
            let rope = &layer.rope;
            (layer.layer.attention().window(), rope.base, rope.scaling)
        })
    };
    let whole = (None, 1e6, by_eight);
    assert_eq!(rotations(&file), [whole; 7], "without a window all layers are alike");
    file.set("gemma3.attention.sliding_window", Value::U32(512));
    let mut expected = [(Some(512), 1e4, RopeScaling::None); 7];
    expected[5] = whole;
    assert_eq!(rotations(&file), expected);
    file.set("gemma3.rope.freq_base_swa", Value::F32(2e4));
    expected.iter_mut().filter(|layer| layer.0.is_some()).for_each(|layer| layer.1 = 2e4);
    assert_eq!(rotations(&file), expected);
    assert_eq!(layers(&file, 7, |layer| layer.layer.attention().soft_cap()), [None; 7]);
    file.set("gemma3.rope.freq_base_swa", Value::F32(-1.0));
    assert_error!(refusal(&file), Error::BadValue { .. }, "gemma3.rope.freq_base_swa");
}

#[test]
fn norms_of_heads_are_read() {
    for architecture in ["qwen3", "gemma3"] {
        let mut file = LayerFile::new(architecture, SMALL);
        file.set(&format!("{architecture}.attention.layer_norm_rms_epsilon"), Value::F32(2e-6));
        with_layer(&file, |layer| {
            let weights = layer.layer.weights();
            for (norm, gamma) in [(&weights.q_norm, 1.25), (&weights.k_norm, 0.75)] {
                let norm = norm.as_ref().expect("a norm of heads");
                assert_eq!((&norm.gamma[..], norm.eps), (&[gamma; 32][..], 2e-6));
            }
            assert_eq!(layer.rope.pairing, Pairing::SplitHalf);
        });
        for name in ["blk.0.attn_q_norm.weight", "blk.0.attn_k_norm.weight"] {
            let changed = |change: &dyn Fn(&mut LayerFile)| {
                let mut file = LayerFile::new(architecture, SMALL);
                change(&mut file);
                refusal(&file)
            };
            let error = changed(&|file| file.remove_tensor(name));
            assert_error!(error, Error::MissingTensor { .. }, name);
            for len in [1, 31, 33, 96] {
                let error = changed(&|file| {
                    file.remove_tensor(name);
                    file.add_f32(name, &vec![1.0; len]);
                });
                assert_error!(error, Error::BadShape { .. }, name, "[32], the head dimension");
            }
            for bad in [f32::NAN, f32::INFINITY] {
                let error = changed(&|file| {
                    file.remove_tensor(name);
                    file.add_f32(name, &[bad; 32]);
                });
                assert_error!(error, Error::NonFiniteElement { .. }, name);
            }
            let error = changed(&|file| file.retype(name, TensorType::F16));
            assert_error!(error, Error::UnsupportedType { .. }, name);
        }
    }
    with_layer(&LayerFile::new("qwen2", SMALL), |layer| {
        let weights = layer.layer.weights();
        assert!(weights.q_norm.is_none() && weights.k_norm.is_none());
    });
}

#[test]
fn hostile_numbers_are_refused() {
    for suffix in ["attention.scale", "attn_logit_softcapping", "attention.clamp_kqv"] {
        let key = format!("qwen2.{suffix}");
        for number in [-1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let error = refused(|file| file.set(&key, Value::F32(number)));
            assert_error!(error, Error::BadValue { .. }, &key);
        }
        let error = refused(|file| file.set(&key, Value::String("1")));
        assert_error!(error, Error::BadValue { .. }, &key);
    }
    for suffix in ["attention.sliding_window", "attention.sliding_window_pattern", "block_count"] {
        for value in [Value::I64(-1), Value::F32(2.0), Value::Bool(true)] {
            let mut file = LayerFile::new("gemma2", SMALL);
            let key = format!("gemma2.{suffix}");
            file.set(&key, value);
            assert_error!(refusal(&file), Error::BadValue { .. }, &key);
        }
    }
    let mut file = LayerFile::new("gemma2", SMALL);
    file.set("gemma2.attention.sliding_window", Value::U64(u64::MAX));
    with_layer(&file, |layer| assert_eq!(layer.layer.attention().window(), Some(usize::MAX)));
}

#[test]
fn other_attentions_are_refused() {
    let error = refused(|file| file.set("general.architecture", Value::String("gemma4")));
    assert_error!(
        error,
        Error::UnsupportedArchitecture { .. },
        "gemma4",
        "\"llama\"",
        "\"gemma2\""
    );
    let error = refused(|file| file.remove_key("general.architecture"));
    assert_error!(error, Error::MissingKey { .. }, "general.architecture");
    let error = refused(|file| file.set("qwen2.attention.clamp_kqv", Value::F32(2.0)));
    assert_error!(error, Error::UnsupportedFeature { .. }, "qwen2.attention.clamp_kqv");
    let mut file = LayerFile::new("qwen2", SMALL);
    file.set("qwen2.attention.clamp_kqv", Value::U32(0));
    with_layer(&file, |_| ());
    let error = refused(|file| file.set("qwen2.attention.causal", Value::Bool(false)));
    assert_error!(error, Error::UnsupportedFeature { .. }, "qwen2.attention.causal");
    for name in ["blk.0.attn_q_norm.weight", "blk.0.attn_norm.bias", "blk.0.attn_qkv.weight"] {
        let error = refused(|file| file.add_f32(name, &[1.0; 32]));
        assert_error!(error, Error::UnsupportedFeature { .. }, name);
    }
    let mut file = LayerFile::new("qwen2", SMALL);
    file.add_f32("blk.1.attn_q_norm.weight", &[1.0; 32]);
    with_layer(&file, |_| ());
}
