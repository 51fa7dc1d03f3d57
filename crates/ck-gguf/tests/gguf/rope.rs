//! The base and the width of a rotation.

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
