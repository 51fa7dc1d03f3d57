//! Weights and biases of a layer: formats, dimensions, values.

use crate::files::{LayerFile, SMALL, refusal, refused, with_layer};
use ck_gguf::{AttentionLayer, Error, GgufFile, TensorType};
use ck_quant::{Format, Isa, QuantizedVector};

// Case B03 (c).
#[test]
fn scales_are_finite() {
    let with = |name: &str, block: usize, bits: u16| {
        let mut file = LayerFile::new("qwen2", SMALL);
        let tensor = file.tensor(name);
        let at = block * tensor.tensor_type.block_bytes();
        tensor.bytes[at..at + 2].copy_from_slice(&bits.to_le_bytes());
        file
    };
    let q5_0 = ["blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_output.weight"];
    for name in q5_0.into_iter().chain(["blk.0.attn_v.weight"]) {
        for bits in [0x7C00, 0x7E00, 0xFC00, 0x7C01, 0xFFFF] {
            let error = refusal(&with(name, 7, bits));
            let per_row = if name == q5_0[2] { 4 } else { 3 };
            let expected = format!("row {}, block {}", 7 / per_row, 7 % per_row);
            assert_error!(error, Error::NonFiniteScale { .. }, name, &expected);
        }
        for bits in [0x7BFF, 0xFBFF, 0, 0x8000, 0x03FF] {
            with_layer(&with(name, 7, bits), |_| ());
        }
    }
    let last = 64 * 96 / 32 - 1;
    let error = refusal(&with("blk.0.attn_v.weight", last, 0x7C00));
    assert_error!(error, Error::NonFiniteScale { row: 63, block: 2, .. }, "row 63, block 2");
}

#[test]
fn norms_and_biases_are_finite() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let error = refused(|file| {
            let tensor = file.tensor("blk.0.attn_norm.weight");
            tensor.bytes[95 * 4..].copy_from_slice(&value.to_le_bytes());
        });
        assert_error!(error, Error::NonFiniteElement { index: 95, .. }, "blk.0.attn_norm.weight");
    }
    let error = refused(|file| {
        file.add_biases();
        file.tensor("blk.0.attn_v.bias").bytes[..4].copy_from_slice(&f32::NAN.to_le_bytes());
    });
    assert_error!(error, Error::NonFiniteElement { index: 0, .. }, "blk.0.attn_v.bias");
}

// Case B42.
#[test]
fn biases_come_together_and_fit() {
    let mut file = LayerFile::new("qwen2", SMALL);
    with_layer(&file, |layer| {
        assert!(layer.layer.weights().q.bias.is_none() && layer.layer.weights().o.bias.is_none())
    });
    file.add_biases();
    with_layer(&file, |layer| {
        assert_eq!(layer.layer.weights().q.bias.as_deref(), Some(&vec![0.25; 128][..]));
        assert_eq!(layer.layer.weights().k.bias.as_deref(), Some(&vec![0.5; 64][..]));
        assert_eq!(layer.layer.weights().v.bias.as_deref(), Some(&vec![0.75; 64][..]));
        assert_eq!(layer.layer.weights().o.bias, None);
    });
    file.add_f32("blk.0.attn_output.bias", &[1.0; 96]);
    with_layer(&file, |layer| {
        assert_eq!(layer.layer.weights().o.bias.as_deref(), Some(&vec![1.0; 96][..]))
    });

    let names = ["blk.0.attn_q.bias", "blk.0.attn_k.bias", "blk.0.attn_v.bias"];
    for present in 1..7_u32 {
        let error = refused(|file| {
            file.add_biases();
            for (index, name) in names.into_iter().enumerate() {
                if present >> index & 1 == 0 {
                    file.remove_tensor(name);
                }
            }
        });
        let missing = names[(!present).trailing_zeros() as usize];
        assert_error!(error, Error::PartialBias { .. }, missing, "is missing");
    }
    for name in names {
        let error = refused(|file| {
            file.add_biases();
            file.remove_tensor(name);
            file.add_f32(name, &[0.0; 65]);
        });
        assert_error!(error, Error::BadShape { .. }, name, "[65]");
    }
    let error = refused(|file| file.add_f32("blk.0.attn_output.bias", &[0.0; 128]));
    assert_error!(error, Error::BadShape { .. }, "blk.0.attn_output.bias", "[96]", "[128]");
}

// Case B53.
#[test]
fn every_tensor_has_its_own_type() {
    let mut file = LayerFile::new("qwen2", SMALL);
    file.add_layer(1, SMALL);
    file.retype("blk.0.attn_k.weight", TensorType::Q8_0);
    file.retype("blk.0.attn_v.weight", TensorType::Q5_0);
    let bytes = file.bytes();
    let parsed = GgufFile::parse(&bytes).expect("the file opens");
    let formats = |number| {
        let layer = AttentionLayer::read(&parsed, number).expect("the layer");
        let weights = layer.layer.weights();
        [&weights.q, &weights.k, &weights.v, &weights.o].map(|part| part.weights().format())
    };
    use Format::{Q5_0, Q8_0};
    assert_eq!(formats(0), [Q5_0, Q8_0, Q5_0, Q5_0]);
    assert_eq!(formats(1), [Q5_0, Q5_0, Q8_0, Q5_0]);
}

// Case B53.
#[test]
fn other_types_are_refused() {
    const Q: &str = "blk.0.attn_q.weight";
    let q5_k = TensorType::from_number(13).expect("a known type");
    let mut wide = LayerFile::new("qwen2", (256, 4, 2, 32));
    wide.retype(Q, q5_k);
    assert_error!(
        refusal(&wide),
        Error::UnsupportedType { number: 13, .. },
        Q,
        "13 (Q5_K)",
        "Q5_0"
    );
    for number in [0, 1, 2, 7] {
        let other = TensorType::from_number(number).expect("a known type");
        let error = refused(|file| file.retype(Q, other));
        let text = format!("{number} ({other})");
        assert_error!(error, Error::UnsupportedType { .. }, Q, &text);
    }
    const NORM: &str = "blk.0.attn_norm.weight";
    let error = refused(|file| file.retype(NORM, TensorType::F16));
    assert_error!(error, Error::UnsupportedType { number: 1, .. }, NORM, "1 (F16)", "F32");
    const BIAS: &str = "blk.0.attn_q.bias";
    let error = refused(|file| {
        file.add_biases();
        file.retype(BIAS, TensorType::Q8_0);
    });
    assert_error!(error, Error::UnsupportedType { number: 8, .. }, BIAS, "8 (Q8_0)", "F32");
}

// Case B54, case B52 (one dimension where two are needed).
#[test]
fn the_first_dimension_is_the_row_length() {
    const K: &str = "blk.0.attn_k.weight";
    let mut file = LayerFile::new("qwen2", (896, 14, 2, 64));
    for (row, bytes) in file.tensor(K).bytes.chunks_exact_mut(28 * 22).enumerate() {
        // Quant 16 + n: the high bit set in every element, n in every nibble.
        let nibble = (row % 15 + 1) as u8;
        for block in bytes.chunks_exact_mut(22) {
            block[2..6].fill(0xFF);
            block[6..].fill(nibble | nibble << 4);
        }
    }
    with_layer(&file, |layer| {
        let weights = layer.layer.weights().k.weights();
        assert_eq!((weights.rows(), weights.columns()), (128, 896));
        let mut activations = QuantizedVector::zeros(896).expect("whole blocks");
        activations.quantize(Isa::Scalar, &[127.0; 896]).expect("finite");
        let mut y = [f32::NAN; 128];
        weights.gemv(Isa::Scalar, &activations, 0..128, &mut y).expect("lengths that fit");
        for (row, y) in y.into_iter().enumerate() {
            assert_eq!(y, (113_792 * (row % 15 + 1)) as f32, "row {row}");
        }
    });
    file.tensor(K).dims = vec![128, 896];
    assert_error!(refusal(&file), Error::BadShape { .. }, K, "[128, 896]", "[896, ");
    for dims in [vec![114_688], vec![896, 64, 2], vec![896, 128, 1]] {
        file.tensor(K).dims = dims;
        assert_error!(refusal(&file), Error::BadShape { .. }, K);
    }
    for (name, dims) in [("q", [128, 96]), ("output", [96, 128]), ("v", [64, 96])] {
        let name = format!("blk.0.attn_{name}.weight");
        let error = refused(|file| file.tensor(&name).dims = dims.to_vec());
        assert_error!(error, Error::BadShape { .. }, &name);
    }
}
