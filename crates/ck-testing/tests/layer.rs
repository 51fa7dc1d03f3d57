//! The layer is the composition of its stages, and its stages are those of the contract.

use ck_testing::compare::Failures;
use ck_testing::generate::{Biases, Formats, Rng, Values, random_layer};
use ck_testing::oracle::{
    CacheRounding, Format, Layer, LayerWeights, Pairing, Rejected, Rope, Shape, dequantize_row,
    narrow, quantize_row, widen,
};

const SHAPE: Shape = Shape { embed_dim: 96, n_heads: 6, n_kv_heads: 3, head_dim: 32 };
const ROPE: Rope = Rope::new(Pairing::SplitHalf, 32, 1e4);

fn layer(formats: Formats, biases: Biases, cache: CacheRounding) -> Layer {
    Layer::new(random_layer(1, SHAPE, formats, biases), ROPE, cache).expect("a good shape")
}

/// A row with every stage written with dequantized matrices instead of integer blocks.
fn by_dequantized_rows(
    projection: &ck_testing::oracle::Projection,
    activations: &[f64],
) -> Vec<f64> {
    let quantized = quantize_row(Format::Q8_0, &narrow(activations)).expect("finite");
    let x = dequantize_row(Format::Q8_0, &quantized);
    let matrix = dequantize_row(projection.format, &projection.bytes);
    let bias = projection.bias.clone().unwrap_or_else(|| vec![0.0; projection.rows()]);
    let dot = |row: &[f64]| -> f64 { row.iter().zip(&x).map(|(w, x)| w * x).sum() };
    matrix.chunks(x.len()).zip(bias).map(|(row, bias)| dot(row) + f64::from(bias)).collect()
}

fn check_close(got: &[f64], expected: &[f64]) -> Result<(), String> {
    let off =
        |(got, expected): (&f64, &f64)| (got - expected).abs() > 1e-10 * (1.0 + expected.abs());
    match got.iter().zip(expected).position(off) {
        _ if got.len() != expected.len() => Err("lengths differ".to_owned()),
        Some(i) => Err(format!("[{i}] got {}, expected {}", got[i], expected[i])),
        None => Ok(()),
    }
}

#[test]
fn every_combination_of_formats_projects_as_its_dequantized_rows() {
    let mut failures = Failures::default();
    let mut rng = Rng::new(2);
    let input = Values::HugeActivations.row(&mut rng, SHAPE.embed_dim);
    for formats in Formats::all() {
        for biases in [Biases::NONE, Biases::QKV, Biases::ALL] {
            let mut layer = layer(formats, biases, CacheRounding::None);
            let trace = layer.step(&input, Some(&input)).expect("finite");
            let context = |stage| format!("{formats:?} {biases:?} {stage}");
            // Position 0 rotates nothing, and attention to one position is its values.
            let weights = &layer.weights;
            for (stage, projection, got) in [
                ("q", &weights.q, &trace.q),
                ("k", &weights.k, &trace.k),
                ("v", &weights.v, &trace.v),
            ] {
                let expected = by_dequantized_rows(projection, &trace.norm);
                failures.add(context(stage), check_close(got, &expected));
            }
            let heads: Vec<&[f64]> = trace.v.chunks(32).collect();
            let expected = [heads[0], heads[0], heads[1], heads[1], heads[2], heads[2]].concat();
            failures.add(context("attn"), check_close(&trace.attn, &expected));
            let mut expected = by_dequantized_rows(&weights.o, &trace.attn);
            expected.iter_mut().zip(&input).for_each(|(out, &x)| *out += f64::from(x));
            failures.add(context("output"), check_close(&trace.output, &expected));
        }
    }
    failures.assert_none();
}

#[test]
fn a_random_layer_keeps_numbers_of_ordinary_size() {
    let mut rng = Rng::new(3);
    for formats in Formats::all() {
        let mut layer = layer(formats, Biases::NONE, CacheRounding::None);
        let input = Values::Normal.row(&mut rng, SHAPE.embed_dim);
        let trace = layer.step(&input, None).expect("finite");
        for (stage, row) in
            [("q", &trace.q), ("k", &trace.k), ("v", &trace.v), ("o", &trace.output)]
        {
            let mean_square = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
            assert!((0.2..5.0).contains(&mean_square.sqrt()), "{formats:?} {stage}: {mean_square}");
        }
    }
}

#[test]
fn a_step_is_its_stages_in_order() {
    for cache in [CacheRounding::None, CacheRounding::F16, CacheRounding::Q8_0] {
        let mut whole = layer(Formats::RECORDED, Biases::QKV, cache);
        let mut parts = whole.clone();
        let mut rng = Rng::new(4);
        for position in 0..5 {
            let input = Values::Normal.row(&mut rng, SHAPE.embed_dim);
            let trace = whole.step(&input, Some(&input)).expect("finite");
            let norm = parts.norm(&input).expect("finite");
            let q = parts.project_q(&norm, position).expect("finite");
            let k = parts.project_k(&norm, position).expect("finite");
            let v = parts.project_v(&norm).expect("finite");
            parts.store(&k, &v).expect("in range");
            let attn = parts.attend(&q);
            let output = parts.output(&attn, Some(&input)).expect("finite");
            assert_eq!((&trace.q, &trace.k, &trace.v), (&q, &k, &v));
            assert_eq!((&trace.attn, &trace.output), (&attn, &output));
            assert_eq!(
                (whole.len(), whole.keys(), whole.values()),
                (position + 1, parts.keys(), parts.values())
            );
            let last = &whole.keys()[position * SHAPE.kv_width()..];
            assert_eq!(last, cache.round(&k).expect("in range"));
            assert_eq!(last == k, cache == CacheRounding::None, "{cache:?}");
        }
    }
}

/// Case B41.
#[test]
fn without_output_weights_the_residual_comes_back() {
    let mut weights = random_layer(5, SHAPE, Formats::RECORDED, Biases::NONE);
    let zeros = quantize_row(Format::Q5_0, &vec![0.0; SHAPE.q_width()]).expect("zeros");
    weights.o.bytes = zeros.repeat(SHAPE.embed_dim);
    let mut layer = Layer::new(weights, ROPE, CacheRounding::None).expect("a good shape");
    let input = Values::Normal.row(&mut Rng::new(6), SHAPE.embed_dim);
    let trace = layer.step(&input, Some(&input)).expect("finite");
    assert_eq!(trace.output, widen(&input));
    let trace = layer.step(&input, None).expect("finite");
    assert_eq!(trace.output, vec![0.0; SHAPE.embed_dim]);
}

/// Case B42.
#[test]
fn a_bias_is_added_before_the_rotation() {
    let shape = Shape { embed_dim: 32, n_heads: 1, n_kv_heads: 1, head_dim: 64 };
    let mut weights = random_layer(7, shape, Formats::RECORDED, Biases::QKV);
    let mut bias_k = vec![0.0; 64];
    bias_k[0] = 1.0;
    let bias_v: Vec<f32> = (0..64u8).map(|i| 0.5 * f32::from(i)).collect();
    weights.k.bias = Some(bias_k.clone());
    weights.v.bias = Some(bias_v.clone());
    let step = |weights: LayerWeights| {
        let rope = Rope::new(Pairing::SplitHalf, 64, 1e6);
        let mut layer = Layer::new(weights, rope, CacheRounding::None).expect("a good shape");
        let first = layer.step(&[0.0; 32], None).expect("zeros");
        (first, layer.step(&[0.0; 32], None).expect("zeros"))
    };
    let (first, second) = step(weights.clone());
    assert_eq!((first.k, first.v), (widen(&bias_k), widen(&bias_v)));
    assert!((second.k[0] - 0.540_302_3).abs() < 5e-8, "{}", second.k[0]);
    assert!((second.k[32] - 0.841_471_0).abs() < 5e-8, "{}", second.k[32]);
    weights.k.bias = None;
    weights.v.bias = None;
    let (_, second) = step(weights);
    assert_eq!((second.k, second.v), (vec![0.0; 64], vec![0.0; 64]));
}

#[test]
fn a_rejected_step_stores_nothing() {
    let mut layer = layer(Formats::RECORDED, Biases::QKV, CacheRounding::F16);
    let good = Values::Normal.row(&mut Rng::new(8), SHAPE.embed_dim);
    layer.step(&good, None).expect("finite");
    let stored = (layer.keys().to_vec(), layer.values().to_vec());
    let mut bad = good.clone();
    bad[95] = f32::NAN;
    assert_eq!(layer.step(&bad, None), Err(Rejected::NonFinite { index: 95 }));
    // Only the last stage sees the residual.
    assert_eq!(layer.step(&good, Some(&bad)), Err(Rejected::NonFinite { index: 95 }));
    layer.weights.v.bias = Some(vec![7e4; SHAPE.kv_width()]);
    assert_eq!(layer.step(&good, None), Err(Rejected::CacheOverflow { index: 0 }));
    assert_eq!((layer.keys(), layer.values()), (&stored.0[..], &stored.1[..]));
}

#[test]
fn shapes_that_the_contract_excludes_are_rejected() {
    for (shape, rejected) in [
        (Shape { n_kv_heads: 4, ..SHAPE }, Rejected::HeadCounts { n_heads: 6, n_kv_heads: 4 }),
        (Shape { head_dim: 40, n_heads: 6, ..SHAPE }, Rejected::PartialBlock { len: 240 }),
        (Shape { embed_dim: 100, ..SHAPE }, Rejected::PartialBlock { len: 100 }),
    ] {
        let mut weights = random_layer(9, SHAPE, Formats::RECORDED, Biases::NONE);
        weights.shape = shape;
        let got = Layer::new(weights, ROPE, CacheRounding::None);
        assert_eq!(got.err(), Some(rejected));
    }
    let halves = Shape { head_dim: 16, ..SHAPE };
    let weights = random_layer(9, halves, Formats::RECORDED, Biases::NONE);
    assert!(Layer::new(weights.clone(), Rope { width: 16, ..ROPE }, CacheRounding::F16).is_ok());
    let got = Layer::new(weights, Rope { width: 16, ..ROPE }, CacheRounding::Q8_0);
    assert_eq!(got.err(), Some(Rejected::PartialBlock { len: 16 }));
}
