//! The rotation of a layer, and attentions that are another than the plain one.

use crate::files::{LayerFile, SMALL, refusal, refused, with_layer};
use ck_gguf::{Error, Value, Warning};
use ck_ops::Pairing;

// Case B57.
#[test]
fn the_rope_base_is_that_of_the_file() {
    const KEY: &str = "qwen2.rope.freq_base";
    let angle = |base: f64| base.powf(-2.0 / 64.0);
    let mut file = LayerFile::new("qwen2", SMALL);
    for value in [Value::F32(1e6), Value::U32(1_000_000), Value::F64(1e6), Value::I64(1_000_000)] {
        file.set(KEY, value);
        with_layer(&file, |layer| {
            assert_eq!((layer.rope.base, layer.warnings.len()), (1e6, 0), "{value}");
            assert!((angle(layer.rope.base) - 0.649_381_6).abs() < 1e-7);
        });
    }
    file.remove_key(KEY);
    with_layer(&file, |layer| {
        assert_eq!(layer.rope.base, 10_000.0);
        assert!((angle(layer.rope.base) - 0.749_894_2).abs() < 1e-7);
        assert_eq!(layer.warnings, [Warning::DefaultRopeBase { key: KEY.to_owned() }]);
        assert!(layer.warnings[0].to_string().contains(KEY));
    });
    for wrong in [Value::F32(0.0), Value::F32(-1.0), Value::F64(f64::NAN), Value::Bool(true)] {
        assert_error!(refused(|file| file.set(KEY, wrong)), Error::BadValue { .. }, KEY);
    }
}

// Case B57: scalings are an error, not ignored.
#[test]
fn rope_scalings_are_refused() {
    for name in ["rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"] {
        let error = refused(|file| file.add_f32(name, &[1.0; 16]));
        assert_error!(error, Error::UnsupportedFeature { .. }, name);
    }
    let linear = |file: &mut LayerFile, factor| {
        file.set("qwen2.rope.scaling.type", Value::String("linear"));
        file.set("qwen2.rope.scaling.factor", Value::F32(factor));
    };
    let error = refused(|file| linear(file, 4.0));
    assert_error!(error, Error::UnsupportedFeature { .. }, "qwen2.rope.scaling.factor");
    for other in ["yarn", "longrope", "nonsense"] {
        let error = refused(|file| file.set("qwen2.rope.scaling.type", Value::String(other)));
        assert_error!(error, Error::UnsupportedFeature { .. }, "qwen2.rope.scaling.type");
    }
    for suffix in ["scaling.factor", "scale_linear", "scaling.attn_factor"] {
        let key = format!("qwen2.rope.{suffix}");
        let error = refused(|file| file.set(&key, Value::F32(0.5)));
        assert_error!(error, Error::UnsupportedFeature { .. }, &key);
    }
    let mut file = LayerFile::new("qwen2", SMALL);
    linear(&mut file, 1.0);
    with_layer(&file, |_| ());
    file.set("qwen2.rope.scaling.type", Value::String("none"));
    with_layer(&file, |_| ());
}

#[test]
fn the_rotary_width_fits_the_head() {
    const KEY: &str = "llama.rope.dimension_count";
    let mut file = LayerFile::new("llama", SMALL);
    with_layer(&file, |layer| {
        assert_eq!((layer.rope.rot_dim, layer.rope.pairing), (32, Pairing::Interleaved));
    });
    file.set(KEY, Value::U32(8));
    with_layer(&file, |layer| assert_eq!(layer.rope.rot_dim, 8));
    for wrong in [0, 7, 34, u32::MAX] {
        file.set(KEY, Value::U32(wrong));
        assert_error!(refusal(&file), Error::BadValue { .. }, KEY, "32");
    }
}

#[test]
fn other_attentions_are_refused() {
    let error = refused(|file| file.set("general.architecture", Value::String("gemma2")));
    assert_error!(error, Error::UnsupportedArchitecture { .. }, "gemma2", "llama");
    let error = refused(|file| file.remove_key("general.architecture"));
    assert_error!(error, Error::MissingKey { .. }, "general.architecture");
    let keys = [
        "attention.scale",
        "attention.sliding_window",
        "attention.clamp_kqv",
        "attn_logit_softcapping",
    ];
    for suffix in keys {
        let key = format!("qwen2.{suffix}");
        let error = refused(|file| file.set(&key, Value::F32(2.0)));
        assert_error!(error, Error::UnsupportedFeature { .. }, &key);
        let mut file = LayerFile::new("qwen2", SMALL);
        file.set(&key, Value::U32(0));
        with_layer(&file, |_| ());
    }
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
