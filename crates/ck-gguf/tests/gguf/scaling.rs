//! Rotations for long contexts, as files name them. Case B57: what is not supported is an error, not ignored.

use crate::files::{LayerFile, SMALL, refusal, refused, with_layer};
use ck_gguf::{Error, Value};
use ck_ops::{RopeConfig, RopeScaling, RopeTable, Yarn};

/// Sets some of a file's `rope.scaling` keys.
fn set(file: &mut LayerFile, keys: &[(&str, Value<'static>)]) {
    for (suffix, value) in keys {
        file.set(&format!("qwen2.rope.scaling.{suffix}"), *value);
    }
}

/// The rotation of a `qwen2` file with these `rope.scaling` keys.
fn rope(keys: &[(&str, Value<'static>)]) -> RopeConfig {
    let mut file = LayerFile::new("qwen2", SMALL);
    set(&mut file, keys);
    with_layer(&file, |layer| {
        RopeTable::new(layer.rope.clone(), 4).expect("a rotation that was checked");
        layer.rope
    })
}

/// The error of a `qwen2` file with these `rope.scaling` keys.
fn wrong(keys: &[(&str, Value<'static>)]) -> Error {
    refused(|file| set(file, keys))
}

const LINEAR: (&str, Value<'_>) = ("type", Value::String("linear"));
const NONE: (&str, Value<'_>) = ("type", Value::String("none"));
const YARN: (&str, Value<'_>) = ("type", Value::String("yarn"));
const FACTOR: (&str, Value<'_>) = ("factor", Value::F32(4.0));
const ORIGINAL: (&str, Value<'_>) = ("original_context_length", Value::U32(32_768));

#[test]
fn linear_scalings_are_read() {
    let by_four = RopeScaling::Linear { factor: 4.0 };
    assert_eq!(rope(&[LINEAR, FACTOR]).scaling, by_four);
    assert_eq!(rope(&[FACTOR]).scaling, by_four, "linear is the default");
    assert_eq!(rope(&[]).scaling, RopeScaling::None);
    assert_eq!(rope(&[NONE, FACTOR]).scaling, RopeScaling::None);
    assert_eq!(rope(&[LINEAR, ("factor", Value::F32(0.0))]).scaling, RopeScaling::None);

    let mut file = LayerFile::new("qwen2", SMALL);
    file.set("qwen2.rope.scale_linear", Value::F32(4.0));
    with_layer(&file, |layer| assert_eq!(layer.rope.scaling, by_four));
    set(&mut file, &[("factor", Value::U32(2))]);
    let newer = RopeScaling::Linear { factor: 2.0 };
    with_layer(&file, |layer| assert_eq!(layer.rope.scaling, newer));
}

#[test]
fn yarn_is_read() {
    let yarn = Yarn::new(4.0, 32_768);
    assert_eq!(rope(&[YARN, FACTOR, ORIGINAL]).scaling, RopeScaling::Yarn(yarn));
    let whole = rope(&[
        YARN,
        FACTOR,
        ORIGINAL,
        ("yarn_ext_factor", Value::F32(0.5)),
        ("yarn_beta_fast", Value::F32(16.0)),
        ("yarn_beta_slow", Value::F32(2.0)),
        ("yarn_log_multiplier", Value::F32(0.25)),
        ("attn_factor", Value::F32(0.5)),
    ]);
    let yarn = yarn.with_ext_factor(0.5).with_betas(16.0, 2.0).with_log_multiplier(0.25);
    assert_eq!((whole.scaling, whole.attn_factor), (RopeScaling::Yarn(yarn), 0.5));
}

#[test]
fn yarn_has_the_defaults_of_llama_cpp() {
    let unset = rope(&[YARN, FACTOR, ORIGINAL, ("yarn_ext_factor", Value::F32(-1.0))]);
    assert_eq!(unset.scaling, RopeScaling::Yarn(Yarn::new(4.0, 32_768)));
    // The context length stands in for the original one.
    let error = wrong(&[YARN, FACTOR]);
    assert_error!(error, Error::MissingKey { .. }, "qwen2.context_length");
    let mut file = LayerFile::new("qwen2", SMALL);
    set(&mut file, &[YARN, ("original_context_length", Value::U32(0))]);
    file.set("qwen2.context_length", Value::U32(4096));
    with_layer(&file, |layer| {
        assert_eq!(layer.rope.scaling, RopeScaling::Yarn(Yarn::new(1.0, 4096)));
    });
}

// 1 + 0.1 ln 4. Programs do not agree about what another number would mean.
#[test]
fn a_magnitude_of_yarn_is_the_one_that_follows() {
    let with = |magnitude| [YARN, FACTOR, ORIGINAL, ("yarn_attn_factor", Value::F32(magnitude))];
    assert_eq!(rope(&with(1.138_629_4)).scaling, RopeScaling::Yarn(Yarn::new(4.0, 32_768)));
    for magnitude in [1.0, 1.139, 0.0, f32::NAN, f32::INFINITY] {
        let error = wrong(&with(magnitude));
        assert_error!(error, Error::BadValue { .. }, "yarn_attn_factor", "1.1386294");
    }
}

#[test]
fn the_models_own_magnitude_is_read() {
    assert_eq!(rope(&[("attn_factor", Value::F32(1.25))]).attn_factor, 1.25);
    for wrong_one in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let error = wrong(&[("attn_factor", Value::F32(wrong_one))]);
        assert_error!(error, Error::BadValue { .. }, "qwen2.rope.scaling.attn_factor");
    }
}

#[test]
fn frequency_factors_are_read() {
    const NAME: &str = "rope_freqs.weight";
    let factors: Vec<f32> = (0..16).map(|pair| 1.0 + pair as f32).collect();
    for architecture in ["llama", "qwen2"] {
        let mut file = LayerFile::new(architecture, SMALL);
        file.add_f32(NAME, &factors);
        with_layer(&file, |layer| {
            assert_eq!(layer.rope.frequency_factors.as_deref(), Some(&factors[..]));
        });
        file.tensor(NAME).dims = vec![8, 2];
        assert_error!(refusal(&file), Error::BadShape { .. }, NAME, "[16]");
    }
    for len in [1, 15, 17, 32] {
        let error = refused(|file| file.add_f32(NAME, &vec![1.0; len]));
        assert_error!(error, Error::BadShape { .. }, NAME, "[16]");
    }
    let error = refused(|file| file.add_f32(NAME, &[f32::NAN; 16]));
    assert_error!(error, Error::NonFiniteElement { .. }, NAME);
    for factor in [0.0, -1.0] {
        let error = refused(|file| file.add_f32(NAME, &[factor; 16]));
        assert_error!(error, Error::Rotation { .. }, "frequency factor of pair 0");
    }
}

#[test]
fn scalings_that_are_not_supported_are_refused() {
    for name in ["rope_factors_long.weight", "rope_factors_short.weight"] {
        let error = refused(|file| file.add_f32(name, &[1.0; 16]));
        assert_error!(error, Error::UnsupportedFeature { .. }, name, "longrope");
    }
    for other in ["longrope", "nonsense", "Yarn"] {
        let error = wrong(&[("type", Value::String(other))]);
        assert_error!(error, Error::UnsupportedFeature { .. }, "qwen2.rope.scaling.type");
    }
    assert_error!(wrong(&[("type", Value::U32(1))]), Error::BadValue { .. }, "scaling.type");
    for key in ["ext_factor", "attn_factor", "beta_fast", "beta_slow", "log_multiplier"] {
        let key = format!("yarn_{key}");
        let error = wrong(&[LINEAR, FACTOR, (&key, Value::F32(1.0))]);
        assert_error!(error, Error::UnsupportedFeature { .. }, &key);
    }
}

#[test]
fn hostile_numbers_are_refused() {
    for factor in [-1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for scaling_type in [LINEAR, NONE, YARN] {
            let error = wrong(&[scaling_type, ("factor", Value::F32(factor))]);
            assert_error!(error, Error::BadValue { .. }, "qwen2.rope.scaling.factor");
        }
    }
    let hostile = [
        ("yarn_ext_factor", f32::NAN),
        ("yarn_ext_factor", 1.5),
        ("yarn_beta_fast", 0.5),
        ("yarn_beta_fast", f32::INFINITY),
        ("yarn_beta_slow", -1.0),
        ("yarn_beta_slow", 0.0),
        ("yarn_log_multiplier", -1.0),
        ("yarn_log_multiplier", f32::NAN),
    ];
    for (key, number) in hostile {
        let error = wrong(&[YARN, FACTOR, ORIGINAL, (key, Value::F32(number))]);
        assert_error!(error, Error::Rotation { .. }, &key["yarn_".len()..]);
    }
    // A frequency beyond all angles, and a base that orders no pairs.
    let error = wrong(&[LINEAR, ("factor", Value::F64(1e-307))]);
    assert_error!(error, Error::Rotation { .. }, "beyond");
    let error = refused(|file| {
        set(file, &[YARN, FACTOR, ORIGINAL]);
        file.set("qwen2.rope.freq_base", Value::F32(1.0));
    });
    assert_error!(error, Error::Rotation { .. }, "base");
    let error = refused(|file| file.set("qwen2.rope.freq_base", Value::F64(5e-324)));
    assert_error!(error, Error::Rotation { .. }, "beyond");
}
