//! A decode call is the composition of its operations, by bits: whatever the residual, in place or not, again
//! and again.

use crate::sample::{Memory, NO_ROPE, ROPE, SHAPE, Sample, YARN, bits, runners, scalar};
use ck_fused::{DecodeContext, DecodeLayer, Projection, Qkv, Stages};
use ck_ops::{
    AttendScratch, CHUNK, CacheElement, KvCache, NewPosition, Q8_0, RopeTable, flash_decode,
    rms_norm,
};
use ck_quant::{Isa, QuantizedVector};
use ck_testing::compare::assert_bits_eq;
use ck_testing::generate::{Biases, Formats, Rng, Values, random_layer, sizes};
use ck_testing::oracle::{Pairing, Rope, Shape};
use ck_testing::run::all_or_few;
use half::f16;

/// One token through the crates' operations, called one by one; its row is appended to the cache.
fn by_operations<E: CacheElement>(
    layer: &DecodeLayer<'_>,
    rope: Option<&RopeTable>,
    cache: &mut KvCache<E>,
    input: &[f32],
    residual: Option<&[f32]>,
) -> Vec<f32> {
    let (isa, shape, weights) = (Isa::Scalar, layer.shape(), layer.weights());
    let project = |projection: &Projection<'_>, x: &[f32]| {
        let mut activations = QuantizedVector::zeros(x.len()).expect("whole blocks");
        activations.quantize(isa, x).expect("finite");
        let rows = projection.weights().rows();
        let mut y = vec![f32::NAN; rows];
        projection.weights().gemv(isa, &activations, 0..rows, &mut y).expect("fits");
        if let Some(bias) = &projection.bias {
            y.iter_mut().zip(&**bias).for_each(|(y, bias)| *y += bias);
        }
        y
    };
    let mut normed = vec![f32::NAN; input.len()];
    rms_norm(isa, input, &weights.norm.gamma, weights.norm.eps, &mut normed).expect("finite");
    let [mut q, mut k, v] = [&weights.q, &weights.k, &weights.v].map(|p| project(p, &normed));
    for (norm, row) in [(&weights.q_norm, &mut q), (&weights.k_norm, &mut k)] {
        if let Some(norm) = norm {
            for head in row.chunks_exact_mut(shape.head_dim()) {
                let projected = head.to_vec();
                rms_norm(isa, &projected, &norm.gamma, norm.eps, head).expect("finite");
            }
        }
    }
    if let Some(rope) = rope {
        rope.apply(isa, cache.len(), &mut q).expect("in the table");
        rope.apply(isa, cache.len(), &mut k).expect("in the table");
    }
    let mut new = NewPosition::new(shape.cache().expect("a shape")).expect("memory");
    new.set(isa, &k, &v).expect("in range");
    cache.append(&new).expect("room");
    let mut scratch = AttendScratch::new(layer.attention()).expect("memory");
    let mut attn = vec![f32::NAN; q.len()];
    flash_decode(isa, layer.attention(), cache, None, &q, &mut scratch, &mut attn).expect("finite");
    let mut output = project(&weights.o, &attn);
    if let Some(residual) = residual {
        output.iter_mut().zip(residual).for_each(|(y, residual)| *y += residual);
    }
    output
}

/// Decodes `tokens` tokens on every level and compares outputs and cache with the operations.
fn check<E: CacheElement>(sample: &Sample, tokens: usize) {
    let layer = sample.layer();
    let mut expected = Memory::<E>::new(sample, tokens);
    let mut memories: Vec<_> = runners().map(|r| (r, Memory::<E>::new(sample, tokens))).collect();
    for token in 0..tokens {
        let input = sample.input(token);
        let Memory { rope, cache, .. } = &mut expected;
        let output = by_operations(&layer, rope.as_ref(), cache, &input, Some(&input));
        for (runner, memory) in &mut memories {
            let got = memory.decode(&layer, runner, &input).expect("finite");
            assert_bits_eq(&format!("{runner:?}, token {token}"), &got, &output);
        }
    }
    for (runner, memory) in memories {
        assert_eq!(memory.stored(), expected.stored(), "{runner:?}");
    }
}

#[test]
fn decoding_is_the_composition_of_the_operations_across_chunks() {
    check::<f32>(&Sample::small(1), CHUNK + 3);
    check::<f16>(&Sample::small(1), CHUNK + 3);
    check::<Q8_0>(&Sample::small(1), CHUNK + 3);
}

#[test]
fn decoding_is_the_composition_of_the_operations_for_every_head_dimension() {
    for head_dim in sizes::HEAD_DIMS {
        for pairing in Pairing::ALL {
            let shape = Shape { embed_dim: 64, n_heads: 8, n_kv_heads: 4, head_dim };
            for width in [0, head_dim / 2, head_dim] {
                check::<f32>(&Sample::new(2, shape, Rope::new(pairing, width, 1e6)), 3);
            }
        }
    }
}

#[test]
fn decoding_is_the_composition_of_the_operations_for_every_format_and_bias() {
    for formats in Formats::all() {
        for biases in [Biases::NONE, Biases::QKV, Biases::ALL] {
            let weights = random_layer(3, SHAPE, formats, biases);
            check::<f32>(&Sample { weights, rope: ROPE }, 3);
        }
    }
}

#[test]
fn decoding_is_the_composition_of_the_operations_with_norms_of_heads_and_scalings() {
    for rope in [ROPE, NO_ROPE, YARN] {
        let sample = Sample::new(12, SHAPE, rope).with_head_norms(13);
        check::<f32>(&sample, 5);
        check::<f16>(&sample, 5);
        check::<Q8_0>(&sample, 5);
        let (mut q_only, mut k_only) = (sample.clone(), sample);
        q_only.weights.k_norm = None;
        k_only.weights.q_norm = None;
        check::<f32>(&q_only, 3);
        check::<f32>(&k_only, 3);
    }
}

#[test]
fn decoding_is_the_composition_of_the_stages() {
    let plain = [ROPE, NO_ROPE].map(|rope| Sample::new(4, SHAPE, rope));
    for sample in plain.into_iter().chain([Sample::new(4, SHAPE, YARN).with_head_norms(5)]) {
        let layer = sample.layer();
        let mut memory = Memory::<f32>::new(&sample, CHUNK + 2);
        let mut scratch = Memory::<f32>::new(&sample, CHUNK + 2).scratch;
        for token in 0..CHUNK + 2 {
            let input = sample.input(token);
            let mut stages = Stages::new(&layer, Isa::Scalar, &mut scratch).expect("fits");
            let normed = stages.norm(&input).expect("finite").to_vec();
            let Qkv { q, k, v } =
                stages.project(&normed, memory.rope.as_ref(), token).expect("finite");
            let (q, k, v) = (q.to_vec(), k.to_vec(), v.to_vec());
            let attn = stages.attend(&memory.cache, &q, &k, &v).expect("finite").to_vec();
            let expected = stages.output(&attn, Some(&input)).expect("finite").to_vec();
            let got = memory.decode(&layer, &scalar(), &input).expect("finite");
            assert_bits_eq(&format!("token {token}"), &got, &expected);
            assert_bits_eq("keys", &memory.keys(token), &k);
            assert_bits_eq("values", &memory.values(token), &v);
        }
    }
}

/// Chunks are merged in their order. Compared before the O projection, whose quantization would hide a last bit.
#[test]
fn attention_over_many_chunks_has_the_bits_of_the_operation() {
    let sample = Sample::small(10);
    let layer = sample.layer();
    let mut rng = Rng::new(11);
    let mut row = |width| Values::Normal.row(&mut rng, width);
    for positions in [1, CHUNK, CHUNK + 1, 2 * CHUNK + 1, 5 * CHUNK + 7] {
        let mut memory = Memory::<f32>::new(&sample, positions);
        for _ in 1..positions {
            memory.store(&row(SHAPE.kv_width()), &row(SHAPE.kv_width()));
        }
        let (q, k, v) = (row(SHAPE.q_width()), row(SHAPE.kv_width()), row(SHAPE.kv_width()));
        for isa in Isa::available() {
            let mut stages = Stages::new(&layer, isa, &mut memory.scratch).expect("fits");
            let got = stages.attend(&memory.cache, &q, &k, &v).expect("finite").to_vec();
            let mut new = NewPosition::new(memory.cache.shape()).expect("memory");
            new.set(isa, &k, &v).expect("in range");
            let mut scratch = AttendScratch::new(layer.attention()).expect("memory");
            let mut expected = vec![f32::NAN; q.len()];
            let (attention, cache, new) = (layer.attention(), &memory.cache, Some(&new));
            flash_decode(Isa::Scalar, attention, cache, new, &q, &mut scratch, &mut expected)
                .expect("finite");
            assert_bits_eq(&format!("{isa:?}, {positions} positions"), &got, &expected);
        }
    }
}

#[test]
fn the_residual_is_the_input_another_vector_or_nothing() {
    let sample = Sample::small(5);
    let layer = sample.layer();
    for runner in runners() {
        let mut memory = Memory::<f32>::new(&sample, 3);
        let mut expected = Memory::<f32>::new(&sample, 3);
        for token in 0..3 {
            let (input, other) = (sample.input(token), sample.input(100 + token));
            for residual in [Some(&input), Some(&other), None] {
                let residual = residual.map(|residual| &residual[..]);
                let Memory { rope, cache, .. } = &mut expected;
                let output = by_operations(&layer, rope.as_ref(), cache, &input, residual);
                let mut got = vec![f32::NAN; input.len()];
                layer
                    .decode(&runner, memory.context(), &input, residual, &mut got)
                    .expect("finite");
                assert_bits_eq(&format!("{runner:?}"), &got, &output);
                // Back to where this token started.
                if residual.is_some() {
                    memory.cache.truncate(token);
                    expected.cache.truncate(token);
                }
            }
        }
        assert_eq!(memory.stored(), expected.stored());
    }
}

#[test]
fn decoding_in_place_has_the_bits_of_decoding_into_another_vector() {
    let sample = Sample::small(6);
    let layer = sample.layer();
    for runner in runners() {
        let mut apart = Memory::<f32>::new(&sample, 40);
        let mut in_place = Memory::<f32>::new(&sample, 40);
        // The output of one token is the input of the next, so that every bit counts.
        let (mut hidden, mut input) = (sample.input(0), sample.input(0));
        for token in 0..40 {
            let kept = bits(&input);
            let output = apart.decode(&layer, &runner, &input).expect("finite");
            assert_eq!(bits(&input), kept, "the input is only read");
            layer.decode_in_place(&runner, in_place.context(), &mut hidden).expect("finite");
            assert_bits_eq(&format!("{runner:?}, token {token}"), &hidden, &output);
            input = output;
        }
        assert_eq!(apart.stored(), in_place.stored(), "{runner:?}");
    }
}

/// One scratch serves layers of one shape in turn; nothing is carried from one call to the next.
#[test]
fn a_scratch_is_shared_by_layers_of_one_shape() {
    let samples = [Sample::small(7), Sample::small(8)];
    let layers = [samples[0].layer(), samples[1].layer()];
    let mut shared = Memory::<f32>::new(&samples[0], 20).scratch;
    let mut together = [0, 1].map(|i| Memory::<f32>::new(&samples[i], 20));
    let mut alone = [0, 1].map(|i| Memory::<f32>::new(&samples[i], 20));
    for token in 0..20 {
        for (i, layer) in layers.iter().enumerate() {
            let input = samples[i].input(token);
            let expected = alone[i].decode(layer, &scalar(), &input).expect("finite");
            let context = DecodeContext { scratch: &mut shared, ..together[i].context() };
            let mut got = vec![f32::NAN; input.len()];
            layer.decode(&scalar(), context, &input, Some(&input), &mut got).expect("finite");
            assert_bits_eq(&format!("layer {i}, token {token}"), &got, &expected);
        }
    }
}

// Case B44, one thread: run to run, the same bits at every context length.
#[test]
fn repeated_runs_give_the_same_bits() {
    let shape = Shape { embed_dim: 64, n_heads: 2, n_kv_heads: 1, head_dim: 32 };
    let sample = Sample::new(9, shape, ROPE);
    let layer = sample.layer();
    let tokens = all_or_few(1000, 300);
    let run = |runner| {
        let mut memory = Memory::<f32>::new(&sample, tokens);
        let mut outputs = Vec::new();
        for token in 0..tokens {
            let output = memory.decode(&layer, &runner, &sample.input(token)).expect("finite");
            if [1, 33, 257, tokens].contains(&(token + 1)) {
                outputs.extend(bits(&output));
            }
        }
        (outputs, memory.stored())
    };
    let first = run(scalar());
    let again = all_or_few(9, 2);
    for runner in runners().chain([scalar(); 9].into_iter().take(again)) {
        assert!(run(runner) == first, "{runner:?}");
    }
}
