//! Cases from the field that concern the whole layer.

use crate::sample::{Memory, NO_ROPE, ROPE, SHAPE, Sample, bits, runners, scalar};
use ck_fused::{LayerError, LayerShape, Qkv, Stages};
use ck_ops::CHUNK;
use ck_quant::Isa;
use ck_testing::compare::{assert_bits_eq, check_within};
use ck_testing::generate::{Rng, Values};
use ck_testing::oracle::{
    self, Block, CacheRounding, Format, Layer, Pairing, Projection, Rope, Shape, widen,
};
use half::f16;

/// A matrix of zeros: rows of zero blocks.
fn zeros(projection: &mut Projection) {
    let zero = Block { scale: f16::ZERO, quants: [0; 32] }.encode(projection.format);
    let blocks = projection.bytes.len() / zero.len();
    projection.bytes = zero.repeat(blocks);
}

/// A square matrix with ones on its diagonal, in Q8_0.
fn identity(width: usize) -> Projection {
    let row = |row: usize| {
        (0..width / 32).flat_map(move |block| {
            let mut quants = [0; 32];
            if block == row / 32 {
                quants[row % 32] = 1;
            }
            Block { scale: f16::ONE, quants }.encode(Format::Q8_0)
        })
    };
    let bytes = (0..width).flat_map(row).collect();
    Projection { format: Format::Q8_0, columns: width, bytes, bias: None }
}

fn normed(sample: &Sample, input: &[f32]) -> Result<Vec<f32>, LayerError> {
    let layer = sample.layer();
    let mut memory = Memory::<f32>::new(sample, 1);
    let mut stages = Stages::new(&layer, Isa::detect(), &mut memory.scratch).expect("fits");
    stages.norm(input).map(<[f32]>::to_vec)
}

// Case B21: the epsilon is the layer's own, inside the root.
#[test]
fn the_norm_uses_the_epsilon_of_the_layer() {
    let shape = Shape { embed_dim: 896, ..SHAPE };
    let mut sample = Sample::new(1, shape, ROPE);
    sample.weights.gamma.fill(1.0);
    for (eps, expected) in [(1e-6, std::f64::consts::FRAC_1_SQRT_2), (1e-5, 0.301_511_34)] {
        sample.weights.eps = eps;
        let got = normed(&sample, &[0.001; 896]).expect("finite");
        assert!(got.iter().all(|y| (f64::from(*y) - expected).abs() < 2e-7), "{eps}: {}", got[0]);
        assert_bits_eq("zeros", &normed(&sample, &[0.0; 896]).expect("zeros"), &[0.0; 896]);
    }
    sample.weights.eps = 0.0;
    assert!(normed(&sample, &[0.0; 896]).is_err());
    assert_eq!(normed(&sample, &[1e-15; 896]).expect("finite"), [1.0; 896]);
}

// Case B22: every lane counts, at any magnitude.
#[test]
fn the_norm_bears_any_magnitude_and_counts_every_element() {
    let shape = Shape { embed_dim: 896, ..SHAPE };
    let mut sample = Sample::new(2, shape, ROPE);
    sample.weights.gamma.fill(1.0);
    for magnitude in [7.0e9, 1.0e18, 1.8e19] {
        let input: Vec<f32> =
            (0..896).map(|i| if i % 2 == 0 { magnitude } else { -magnitude }).collect();
        let got = normed(&sample, &input).expect("a finite mean");
        for (y, x) in got.iter().zip(&input) {
            assert!((y - x.signum()).abs() < 1e-6, "{magnitude:e}: {y}");
        }
    }
    sample.weights.eps = 0.0;
    for place in [0, 7, 31, 863, 895] {
        let mut input = [0.0; 896];
        input[place] = 35.0;
        let got = normed(&sample, &input).expect("finite");
        let mut expected = [0.0f32; 896];
        expected[place] = 896f32.sqrt();
        assert!((got[place] - expected[place]).abs() < 4e-6, "{}", got[place]);
        expected[place] = got[place];
        assert_bits_eq("the others", &got, &expected);
    }
}

// Case B25: what was dropped from the cache has no influence.
#[test]
fn dropped_positions_have_no_influence() {
    let sample = Sample::small(3);
    let layer = sample.layer();
    for runner in runners() {
        for kept in [0, 1, 3, 31, 33] {
            let mut memory = Memory::<f32>::new(&sample, CHUNK + 40);
            let mut fresh = Memory::<f32>::new(&sample, kept + 2);
            for token in 0..kept {
                for memory in [&mut memory, &mut fresh] {
                    memory.decode(&layer, &runner, &sample.input(token)).expect("finite");
                }
            }
            // Rows whose weight would be overwhelming, and values that no average survives.
            let shape = sample.weights.shape;
            while memory.cache.len() < memory.cache.capacity() {
                memory.store(&vec![1e15; shape.kv_width()], &vec![f32::MAX; shape.kv_width()]);
            }
            if kept == 0 {
                memory.cache.clear();
            } else {
                memory.cache.truncate(kept);
            }
            for token in kept..kept + 2 {
                let input = sample.input(token);
                let got = memory.decode(&layer, &runner, &input).expect("finite");
                let expected = fresh.decode(&layer, &runner, &input).expect("finite");
                assert_bits_eq(&format!("{runner:?}, {kept} kept"), &got, &expected);
            }
            assert_eq!(memory.stored(), fresh.stored());
        }
    }
}

// Case B26: row values are 10 * head + position; the fifth token lands nowhere.
#[test]
fn a_token_beyond_capacity_lands_on_no_other_head() {
    let sample = Sample::new(4, Shape { head_dim: 64, ..SHAPE }, NO_ROPE);
    let layer = sample.layer();
    for runner in runners() {
        let mut memory = Memory::<f32>::new(&sample, 4);
        for position in 0..4u8 {
            let row = |head: u8| vec![f32::from(10 * head + position); 64];
            let rows = [row(0), row(1)].concat();
            memory.store(&rows, &rows);
        }
        let stored = memory.stored();
        let mut hidden = sample.input(4);
        let before = bits(&hidden);
        let error = layer.decode_in_place(&runner, memory.context(), &mut hidden);
        assert_eq!(error, Err(LayerError::CacheFull { len: 4, capacity: 4 }));
        assert_eq!(bits(&hidden), before);
        assert_eq!((memory.cache.len(), memory.stored()), (4, stored));
        assert_eq!(memory.keys(0)[64..], [10.0; 64]);
    }
}

// Case B27: slot, rotation and attended length of the token after a prompt of nine.
#[test]
fn the_tenth_token_is_position_nine_everywhere() {
    let sample = Sample::small(5);
    let layer = sample.layer();
    for runner in runners() {
        let mut memory = Memory::<f32>::new(&sample, 11);
        for token in 0..9 {
            memory.decode(&layer, &runner, &sample.input(token)).expect("finite");
        }
        let prompt = memory.stored();
        let input = sample.input(9);

        let mut scratch = Memory::<f32>::new(&sample, 20).scratch;
        let mut stages = Stages::new(&layer, runner.isa(), &mut scratch).expect("fits");
        let normed = stages.norm(&input).expect("finite").to_vec();
        let table = sample.table(11);
        let mut at = |position| {
            let Qkv { q, k, v } =
                stages.project(&normed, table.as_ref(), position).expect("finite");
            (q.to_vec(), k.to_vec(), v.to_vec())
        };
        let (q, k, v) = at(9);
        assert_ne!(at(8).1, k);
        assert_ne!(at(10).1, k);

        // The attended length: the oracle over ten rows agrees, over nine or without the own one it does not.
        let mut oracle = Layer::new(sample.weights.clone(), sample.rope, CacheRounding::None)
            .expect("a good shape");
        for position in 0..9 {
            let (k, v) = (memory.keys(position), memory.values(position));
            oracle.store(&widen(&k), &widen(&v)).expect("in range");
        }
        let without_own = oracle.attend(&widen(&q));
        oracle.store(&widen(&k), &widen(&v)).expect("in range");
        let attn = stages.attend(&memory.cache, &q, &k, &v).expect("finite").to_vec();
        let bounds = vec![1e-4; attn.len()];
        assert_eq!(check_within(&attn, &oracle.attend(&widen(&q)), &bounds), Ok(()));
        assert!(check_within(&attn, &without_own, &bounds).is_err());
        let expected = stages.output(&attn, Some(&input)).expect("finite").to_vec();

        let got = memory.decode(&layer, &runner, &input).expect("finite");
        assert_bits_eq("output", &got, &expected);
        assert_eq!(memory.cache.len(), 10);
        assert_bits_eq("keys in slot 9", &memory.keys(9), &k);
        assert_bits_eq("values in slot 9", &memory.values(9), &v);
        assert_eq!(memory.stored()[..prompt.len()], prompt, "slots 0 to 8");
    }
}

// Case B27: the first token ever.
#[test]
fn the_first_token_attends_to_itself_alone() {
    let sample = Sample::small(6);
    let layer = sample.layer();
    let mut memory = Memory::<f32>::new(&sample, 1);
    let input = sample.input(0);
    let Memory { rope, cache, scratch } = &mut memory;
    let mut stages = Stages::new(&layer, Isa::detect(), scratch).expect("fits");
    let normed = stages.norm(&input).expect("finite").to_vec();
    let Qkv { q, k, v } = stages.project(&normed, rope.as_ref(), 0).expect("finite");
    let (q, k, v) = (q.to_vec(), k.to_vec(), v.to_vec());
    let attn = stages.attend(cache, &q, &k, &v).expect("finite").to_vec();
    let own = [&v[..32], &v[..32], &v[32..], &v[32..]].concat();
    assert_bits_eq("attention", &attn, &own);
    memory.decode(&layer, &scalar(), &input).expect("finite");
    assert_eq!(memory.cache.len(), 1);
    assert_bits_eq("values in slot 0", &memory.values(0), &v);
}

// Case B28, kernel fault 1: V of KV head g is g + 1 everywhere, O is the identity, so the output shows which KV head
// every query head read.
#[test]
fn query_heads_read_the_kv_head_of_their_global_number() {
    for (n_heads, n_kv_heads) in [(14, 2), (28, 4), (32, 8), (12, 12), (8, 1), (9, 3)] {
        let head_dim = 32;
        let shape = Shape { embed_dim: n_heads * head_dim, n_heads, n_kv_heads, head_dim };
        let mut sample = Sample::new(7, shape, ROPE);
        zeros(&mut sample.weights.v);
        let v = (0..shape.kv_width()).map(|i| (i / head_dim + 1) as f32).collect();
        sample.weights.v.bias = Some(v);
        sample.weights.o = identity(shape.embed_dim);
        let layer = sample.layer();
        for runner in runners() {
            let mut memory = Memory::<f32>::new(&sample, 3);
            for token in 0..3 {
                let mut output = vec![f32::NAN; shape.embed_dim];
                layer
                    .decode(&runner, memory.context(), &sample.input(token), None, &mut output)
                    .expect("finite");
                // Quantization of a constant block loses less than 2^-10 of it.
                let read: Vec<usize> = output.iter().map(|y| y.round() as usize).collect();
                let group = n_heads / n_kv_heads;
                for (head, read) in read.chunks(head_dim).enumerate() {
                    assert_eq!(read, vec![head / group + 1; head_dim], "{n_heads}/{n_kv_heads}");
                }
            }
        }
    }
    for (n_heads, n_kv_heads) in [(15, 2), (2, 14), (14, 0)] {
        assert!(LayerShape::new(896, n_heads, n_kv_heads, 64).is_err());
    }
}

// Case B41: with an O projection of zeros the residual comes back, bit for bit.
#[test]
fn the_residual_is_the_input_and_nothing_that_was_normalized() {
    let shape = Shape { embed_dim: 896, n_heads: 14, n_kv_heads: 2, head_dim: 64 };
    let mut sample = Sample::new(8, shape, Rope { width: 64, ..ROPE });
    zeros(&mut sample.weights.o);
    sample.weights.o.bias = None;
    let layer = sample.layer();
    for runner in runners() {
        let mut memory = Memory::<f32>::new(&sample, 6);
        for token in 0..3 {
            let input = sample.input(token);
            let kept = input.clone();
            let output = memory.decode(&layer, &runner, &input).expect("finite");
            assert_bits_eq("output", &output, &kept);
            assert_bits_eq("input", &input, &kept);
            let mut hidden = input;
            layer.decode_in_place(&runner, memory.context(), &mut hidden).expect("finite");
            assert_bits_eq("in place", &hidden, &kept);
        }
    }
}

// Case B42: biases first, rotation after.
#[test]
fn biases_are_added_before_the_rotation() {
    let shape = Shape { embed_dim: 896, n_heads: 14, n_kv_heads: 2, head_dim: 64 };
    let rope = Rope::new(Pairing::SplitHalf, 64, 1e6);
    let mut sample = Sample::new(9, shape, rope);
    let mut bias_k = vec![0.0; 128];
    (bias_k[0], bias_k[64]) = (1.0, 1.0);
    let bias_v: Vec<f32> = (0..128u8).map(|i| 0.5 * f32::from(i)).collect();
    sample.weights.k.bias = Some(bias_k.clone());
    sample.weights.v.bias = Some(bias_v.clone());
    for runner in runners() {
        let two_tokens = |sample: &Sample| {
            let layer = sample.layer();
            let mut memory = Memory::<f32>::new(sample, 2);
            for _ in 0..2 {
                memory.decode(&layer, &runner, &[0.0; 896]).expect("finite");
            }
            memory
        };
        let memory = two_tokens(&sample);
        assert_bits_eq("K of position 0", &memory.keys(0), &bias_k);
        assert_bits_eq("V of position 0", &memory.values(0), &bias_v);
        assert_bits_eq("V of position 1", &memory.values(1), &bias_v);
        for head in memory.keys(1).chunks(64) {
            assert_eq!((head[0], head[32]), (1f64.cos() as f32, 1f64.sin() as f32));
            assert!((head[0] - 0.540_302_3).abs() < 1e-7 && (head[32] - 0.841_471).abs() < 1e-7);
            assert!(head[1..32].iter().chain(&head[33..]).all(|&x| x == 0.0), "{head:?}");
        }

        let mut without = sample.clone();
        (without.weights.k.bias, without.weights.v.bias) = (None, None);
        let memory = two_tokens(&without);
        assert!(memory.stored().iter().all(|&bits| bits << 1 == 0), "zeros of either sign");
    }
}

// Case B01: blocks of zeros, in the weights and in the activations, give zeros and no NaN.
#[test]
fn zeros_stay_zeros() {
    let mut sample = Sample::small(10);
    for projection in [&mut sample.weights.q, &mut sample.weights.k, &mut sample.weights.v] {
        zeros(projection);
        projection.bias = None;
    }
    sample.weights.o.bias = None;
    let layer = sample.layer();
    let mut memory = Memory::<f32>::new(&sample, 2);
    for input in [sample.input(0), vec![0.0; SHAPE.embed_dim]] {
        let mut output = vec![f32::NAN; input.len()];
        layer.decode(&scalar(), memory.context(), &input, None, &mut output).expect("finite");
        assert!(output.iter().all(|&y| y == 0.0), "{output:?}");
        let again = Values::Normal.row(&mut Rng::new(1), SHAPE.embed_dim);
        let kept = memory.decode(&layer, &scalar(), &again);
        memory.cache.truncate(1);
        assert_bits_eq("residual", &kept.unwrap_or(again.clone()), &again);
    }
}

/// The scale, the soft cap and the window of an attention of the caller's choice reach the heads.
#[test]
fn another_attention_is_the_one_that_is_used() {
    let sample = Sample::small(11);
    let attention = sample.shape().attention().expect("an attention");
    let attention = attention
        .with_scale(0.25)
        .and_then(|attention| attention.with_soft_cap(3.0))
        .and_then(|attention| attention.with_window(7))
        .expect("an attention")
        .with_sinks(2);
    let layer = sample.layer().with_attention(attention).expect("the layer's heads");
    let mut memory = Memory::<f32>::new(&sample, 20);
    let mut oracle =
        Layer::new(sample.weights.clone(), sample.rope, CacheRounding::None).expect("a good shape");
    oracle.attention = oracle::Attention {
        scale: 0.25,
        soft_cap: Some(3.0),
        window: Some(7),
        sinks: 2,
        ..oracle.attention
    };
    for token in 0..20 {
        let input = sample.input(token);
        let mut scratch = Memory::<f32>::new(&sample, 20).scratch;
        let mut stages = Stages::new(&layer, Isa::detect(), &mut scratch).expect("fits");
        let normed = stages.norm(&input).expect("finite").to_vec();
        let table = memory.rope.as_ref();
        let Qkv { q, k, v } = stages.project(&normed, table, token).expect("finite");
        let (q, k, v) = (q.to_vec(), k.to_vec(), v.to_vec());
        let attn = stages.attend(&memory.cache, &q, &k, &v).expect("finite").to_vec();
        oracle.store(&widen(&k), &widen(&v)).expect("in range");
        let exact = oracle.attend(&widen(&q));
        let bounds = vec![2e-5; attn.len()];
        assert_eq!(check_within(&attn, &exact, &bounds), Ok(()), "token {token}");
        let expected = stages.output(&attn, Some(&input)).expect("finite").to_vec();
        let got = memory.decode(&layer, &scalar(), &input).expect("finite");
        assert_bits_eq("output", &got, &expected);
    }
}
