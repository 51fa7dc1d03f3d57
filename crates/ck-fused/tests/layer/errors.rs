//! What the constructors and the stages refuse, and what they say.

use crate::sample::{Memory, ROPE, SHAPE, Sample};
use ck_fused::{
    DecodeLayer, LayerError, LayerWeights, Norm, Scratch, Stages, Strategy, UnknownStrategy,
};
use ck_ops::{Attention, CacheShape, KvCache};
use ck_quant::{Format, Isa, Matrix};
use ck_testing::generate::Values;
use ck_testing::oracle::Shape;
use std::borrow::Cow;

fn refusal(sample: &Sample, change: impl FnOnce(&mut LayerWeights<'_>)) -> LayerError {
    let mut weights = sample.layer_weights();
    change(&mut weights);
    DecodeLayer::new(sample.shape(), weights).expect_err("weights that do not fit")
}

// Kernel fault 7, case B12: a matrix has exactly the rows and columns of the layer's shape.
#[test]
fn matrices_of_other_shapes() {
    let sample = Sample::small(1);
    let bytes = vec![0; 10_000_000];
    let shape = sample.shape();
    let (embed, q, kv) = (shape.embed_dim(), shape.q_dim(), shape.kv_dim());
    for (index, name, rows, columns) in
        [(0, "Q", q, embed), (1, "K", kv, embed), (2, "V", kv, embed), (3, "O", embed, q)]
    {
        for (rows_found, columns_found) in [
            (rows - 1, columns),
            (rows + 1, columns),
            (rows, columns - 32),
            (rows, columns + 32),
            (columns, rows),
            (0, columns),
            (rows, 0),
        ] {
            for format in [Format::Q5_0, Format::Q8_0] {
                let len = format.matrix_bytes(rows_found, columns_found).expect("a size");
                let matrix =
                    Matrix::new(format, rows_found, columns_found, &bytes[..len]).expect("zeros");
                let mut weights = sample.layer_weights();
                let LayerWeights { q, k, v, o, .. } = &mut weights;
                [q, k, v, o][index].matrix = matrix.into();
                let error = DecodeLayer::new(shape, weights).expect_err("another shape");
                let text = error.to_string();
                for part in [
                    format!("{name} projection"),
                    format!("{rows} rows of {columns}"),
                    format!("{rows_found} rows of {columns_found}"),
                ] {
                    assert!(text.contains(&part), "{text:?} does not say {part:?}");
                }
            }
        }
    }
}

#[test]
fn vectors_of_other_lengths_and_what_is_not_finite() {
    let sample = Sample::small(2);
    let shape = sample.shape();
    type Put = fn(&mut LayerWeights<'_>, Vec<f32>);
    let vectors: [(&str, usize, Put); 7] = [
        ("norm weight", shape.embed_dim(), |w, x| w.norm.gamma = Cow::Owned(x)),
        ("Q bias", shape.q_dim(), |w, x| w.q.bias = Some(Cow::Owned(x))),
        ("K bias", shape.kv_dim(), |w, x| w.k.bias = Some(Cow::Owned(x))),
        ("V bias", shape.kv_dim(), |w, x| w.v.bias = Some(Cow::Owned(x))),
        ("O bias", shape.embed_dim(), |w, x| w.o.bias = Some(Cow::Owned(x))),
        ("Q norm weight", shape.head_dim(), |w, x| w.q_norm = Some(Norm::new(x, 1e-6))),
        ("K norm weight", shape.head_dim(), |w, x| w.k_norm = Some(Norm::new(x, 1e-6))),
    ];
    for (what, expected, put) in vectors {
        for found in [0, 1, expected - 1, expected + 1] {
            let error = refusal(&sample, |weights| put(weights, vec![1.0; found]));
            assert_eq!(error, LayerError::Length { what, expected, found });
        }
        for value in Values::NON_FINITE {
            for place in [0, expected - 1] {
                let mut vector = vec![1.0; expected];
                vector[place] = value;
                let error = refusal(&sample, |weights| put(weights, vector));
                let named = matches!(
                    error,
                    LayerError::NotFinite { what: w, index, .. } if w == what && index == place
                );
                assert!(named, "{error}");
            }
        }
    }
}

// Case B21.
#[test]
fn an_epsilon_is_finite_and_not_negative() {
    let sample = Sample::small(3);
    for eps in [-1e-6, f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
        let error = refusal(&sample, |weights| weights.norm.eps = eps);
        assert!(matches!(error, LayerError::Epsilon { .. }), "{error}");
        let head_norm = || Some(Norm::new(vec![1.0; 32], eps));
        for put in [
            |w: &mut LayerWeights<'_>, norm| w.q_norm = norm,
            |w: &mut LayerWeights<'_>, norm| w.k_norm = norm,
        ] {
            let error = refusal(&sample, |weights| put(weights, head_norm()));
            assert!(matches!(error, LayerError::Epsilon { .. }), "{error}");
        }
    }
    for eps in [0.0, -0.0, f32::from_bits(1), 1e-5, f32::MAX] {
        let mut weights = sample.layer_weights();
        weights.norm.eps = eps;
        assert!(DecodeLayer::new(sample.shape(), weights).is_ok(), "{eps}");
    }
}

#[test]
fn an_attention_of_other_heads() {
    let sample = Sample::small(4);
    for (n_heads, n_kv_heads, head_dim) in [(2, 2, 32), (8, 2, 32), (4, 1, 32), (4, 2, 64)] {
        let other = Attention::new(n_heads, n_kv_heads, head_dim).expect("an attention");
        let error = sample.layer().with_attention(other).expect_err("other heads");
        let text = error.to_string();
        assert!(matches!(error, LayerError::Mismatch { what: "the attention", .. }), "{text}");
        assert!(text.contains("4 heads on 2 KV heads, head dim 32"), "{text}");
    }
    let own = Attention::new(4, 2, 32).and_then(|own| own.with_scale(0.5)).expect("an attention");
    let layer = sample.layer().with_attention(own.clone()).expect("the layer's heads");
    assert_eq!(layer.attention(), &own);
}

#[test]
fn stages_refuse_rows_of_other_lengths_and_what_is_not_finite() {
    let sample = Sample::small(5);
    let layer = sample.layer();
    let mut memory = Memory::<f32>::new(&sample, 1);
    let table = memory.rope.take();
    let Memory { cache, scratch, .. } = &mut memory;
    let mut stages = Stages::new(&layer, Isa::Scalar, scratch).expect("fits");
    let (embed, q_dim, kv_dim) = (SHAPE.embed_dim, SHAPE.q_width(), SHAPE.kv_width());
    let (q, kv) = (vec![1.0; q_dim], vec![1.0; kv_dim]);

    let mut rows: Vec<Vec<f32>> =
        [0, embed - 1, embed + 1, kv_dim + 1, q_dim + 1].map(|len| vec![1.0; len]).to_vec();
    for len in [embed, q_dim, kv_dim] {
        let mut row = vec![1.0; len];
        row[len - 1] = f32::NAN;
        rows.push(row);
    }
    for row in &rows {
        let what = |result: Result<(), LayerError>| match result {
            Err(LayerError::Length { what, .. } | LayerError::NotFinite { what, .. }) => what,
            other => panic!("{other:?}"),
        };
        assert_eq!(what(stages.norm(row).map(drop)), "input");
        assert_eq!(what(stages.project(row, None, 0).map(drop)), "normed");
        assert_eq!(what(stages.attend(cache, row, &kv, &kv).map(drop)), "q");
        assert_eq!(what(stages.attend(cache, &q, row, &kv).map(drop)), "k");
        assert_eq!(what(stages.attend(cache, &q, &kv, row).map(drop)), "v");
        assert_eq!(what(stages.output(row, None).map(drop)), "attn");
        assert_eq!(what(stages.output(&q, Some(row)).map(drop)), "residual");
    }

    let normed = vec![1.0; embed];
    for position in [1, usize::MAX] {
        assert!(stages.project(&normed, table.as_ref(), position).is_err(), "{position}");
    }
    let other = KvCache::with_capacity(CacheShape::new(2, 64).expect("a shape"), 1);
    let other = other.expect("memory");
    assert!(stages.attend(&other, &q, &kv, &kv).is_err());
    assert!(cache.is_empty());
}

#[test]
fn stages_refuse_a_scratch_of_another_shape() {
    let sample = Sample::small(6);
    let other = Sample::new(6, Shape { embed_dim: 64, ..SHAPE }, ROPE);
    let mut scratch = Scratch::<f32>::new(other.shape(), 4).expect("memory");
    let layer = sample.layer();
    let error = Stages::new(&layer, Isa::Scalar, &mut scratch).expect_err("another shape");
    assert!(matches!(error, LayerError::Mismatch { what: "the scratch", .. }), "{error}");
    assert!(error.to_string().contains("embed 64"), "{error}");
}

#[test]
fn names_of_strategies_are_read_back() {
    for &strategy in Strategy::ALL {
        assert_eq!(strategy.name().parse(), Ok(strategy));
        assert_eq!(format!("{strategy}"), strategy.name());
    }
    for name in ["", "Serial", "serial ", "all"] {
        let error = name.parse::<Strategy>().expect_err("no strategy");
        assert_eq!(error, UnknownStrategy { name: name.to_owned() });
        let text = error.to_string();
        assert!(text.contains(&format!("{name:?}")) && text.contains("serial"), "{text}");
    }
}
