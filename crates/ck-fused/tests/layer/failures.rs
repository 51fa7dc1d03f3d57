//! A call that fails changes nothing: not the output, not the hidden state, not the cache. The next call gives
//! what it would have given.

use crate::sample::{Memory, NO_ROPE, SHAPE, Sample, bits, runners};
use ck_fused::{DecodeLayer, LayerError, Runner, Scratch};
use ck_ops::{CHUNK, CacheElement, CacheShape, KvCache, OpError, Q8_0, RopeConfig, RopeTable};
use ck_quant::QuantError;
use ck_testing::generate::Values;
use ck_testing::oracle::{HeadNorm, LayerWeights, Projection, Shape};
use half::f16;

/// Tokens decoded before a call fails: some, and as many as make the failing one begin a chunk.
const BEFORE: [usize; 3] = [0, 5, CHUNK];

/// What is given to a call that is to fail, and how.
struct Failing<'f, E: CacheElement> {
    layer: &'f DecodeLayer<'f>,
    runner: &'f Runner<'f>,
    memory: &'f mut Memory<E>,
}

impl<E: CacheElement> Failing<'_, E> {
    /// Decodes into an output of `output_len` elements, sees the error, and that nothing changed.
    fn apart(&mut self, input: &[f32], residual: Option<&[f32]>, output_len: usize) -> LayerError {
        let stored = self.memory.stored();
        let mut output: Vec<f32> = (0..output_len).map(|i| i as f32 - 7.5).collect();
        let (before, given) = (bits(&output), bits(input));
        let error = self
            .layer
            .decode(self.runner, self.memory.context(), input, residual, &mut output)
            .expect_err("a call that fails");
        assert_eq!(bits(&output), before, "the output after {error:?}");
        assert_eq!(bits(input), given, "the input after {error:?}");
        assert!(self.memory.stored() == stored, "the cache after {error:?}");
        error
    }

    /// Decodes in place, sees the error, and that nothing changed.
    fn in_place(&mut self, hidden: &[f32]) -> LayerError {
        let stored = self.memory.stored();
        let mut changed = hidden.to_vec();
        let error = self
            .layer
            .decode_in_place(self.runner, self.memory.context(), &mut changed)
            .expect_err("a call that fails");
        assert_eq!(bits(&changed), bits(hidden), "the hidden state after {error:?}");
        assert!(self.memory.stored() == stored, "the cache after {error:?}");
        error
    }
}

/// Decodes some tokens, lets `fail` fail on the memory in its own ways, and goes on: the outputs and the cache have
/// the bits of a run in which nothing failed.
fn among_good_calls<E: CacheElement>(
    sample: &Sample,
    fail: impl Fn(&Runner, &mut Memory<E>, usize),
) {
    let layer = sample.layer();
    for runner in runners() {
        for before in BEFORE {
            let capacity = before + 2;
            let mut undisturbed = Memory::<E>::new(sample, capacity);
            let mut memory = Memory::<E>::new(sample, capacity);
            for token in 0..capacity {
                if token >= before {
                    fail(&runner, &mut memory, token);
                }
                let input = sample.input(token);
                let got = memory.decode(&layer, &runner, &input).expect("a good call");
                let expected = undisturbed.decode(&layer, &runner, &input).expect("a good call");
                assert_eq!(bits(&got), bits(&expected), "{runner:?}, token {token}");
            }
            assert!(memory.stored() == undisturbed.stored(), "{runner:?}");
        }
    }
}

#[test]
fn wrong_lengths() {
    let sample = Sample::small(1);
    let layer = sample.layer();
    among_good_calls::<f32>(&sample, |runner, memory, token| {
        let (input, len) = (sample.input(token), SHAPE.embed_dim);
        let mut call = Failing { layer: &layer, runner, memory };
        for wrong in [0, 1, len - 32, len - 1, len + 1, len + 32] {
            let other = vec![1.0; wrong];
            let error = |what| LayerError::Length { what, expected: len, found: wrong };
            assert_eq!(call.apart(&other, None, len), error("input"));
            assert_eq!(call.apart(&input, Some(&other), len), error("residual"));
            assert_eq!(call.apart(&input, Some(&input), wrong), error("output"));
            assert_eq!(call.in_place(&other), error("input"));
        }
    });
}

// Kernel fault 8: NaN and infinity vanish, and the poisoned row spoils the tokens after it.
#[test]
fn numbers_that_are_not_finite() {
    let sample = Sample::small(2);
    let layer = sample.layer();
    among_good_calls::<f32>(&sample, |runner, memory, token| {
        let (input, len) = (sample.input(token), SHAPE.embed_dim);
        let mut call = Failing { layer: &layer, runner, memory };
        for value in Values::NON_FINITE {
            for place in [0, 1, 31, 32, len / 2, len - 1] {
                let mut bad = input.clone();
                bad[place] = value;
                let named = |what: &str, error: LayerError| {
                    let text = error.to_string();
                    let found =
                        matches!(error, LayerError::NotFinite { index, .. } if index == place);
                    assert!(found && text.starts_with(what), "{text}");
                };
                named("input", call.apart(&bad, None, len));
                named("input", call.apart(&bad, Some(&input), len));
                named("residual", call.apart(&input, Some(&bad), len));
                named("input", call.in_place(&bad));
            }
        }
    });
}

/// A layer like `sample`'s, of the same shape, but with one thing in it that makes its calls fail.
fn spoiled(sample: &Sample, spoil: impl Fn(&mut LayerWeights)) -> Sample {
    let mut spoiled = sample.clone();
    spoil(&mut spoiled.weights);
    spoiled
}

fn set_bias(bias: &mut Option<Vec<f32>>, value: f32) {
    *bias.as_mut().and_then(|bias| bias.last_mut()).expect("a bias") = value;
}

/// Lets the calls of a spoiled layer fail among the good ones of `sample`; `expected` says whether the
/// error is the right one.
fn overflow<E: CacheElement>(
    sample: &Sample,
    spoil: impl Fn(&mut LayerWeights),
    expected: impl Fn(&LayerError) -> bool,
) {
    let spoiled = spoiled(sample, spoil);
    let layer = spoiled.layer();
    among_good_calls::<E>(sample, |runner, memory, token| {
        let input = sample.input(token);
        let mut call = Failing { layer: &layer, runner, memory };
        for error in [call.apart(&input, Some(&input), input.len()), call.in_place(&input)] {
            assert!(expected(&error), "{error:?}");
        }
    });
}

// Kernel fault 8: what is too large for a step is an error of that step.
#[test]
fn overflows_of_the_norm() {
    let sample = Sample::small(3);
    overflow::<f32>(
        &sample,
        |weights| weights.gamma.fill(f32::MAX),
        // Whichever comes first: a product beyond f32, or one that is only too large to be quantized.
        |error| {
            use QuantError::{NotFinite, ScaleOverflow};
            matches!(error, LayerError::Quant(NotFinite { .. } | ScaleOverflow { .. }))
        },
    );
    overflow::<f32>(
        &sample,
        |weights| weights.gamma.fill(1e30),
        |error| matches!(error, LayerError::Quant(QuantError::ScaleOverflow { .. })),
    );
    let layer = sample.layer();
    among_good_calls::<f32>(&sample, |runner, memory, _| {
        let mut call = Failing { layer: &layer, runner, memory };
        for value in [f32::MAX, -1e20] {
            let error = call.in_place(&[value; SHAPE.embed_dim]);
            assert!(matches!(error, LayerError::Op(OpError::MeanSquareOverflow { .. })), "{error}");
        }
    });
}

// Case B21: nothing to divide by is refused, not NaN.
#[test]
fn zeros_without_an_epsilon() {
    let sample = spoiled(&Sample::small(4), |weights| weights.eps = 0.0);
    let layer = sample.layer();
    among_good_calls::<f32>(&sample, |runner, memory, _| {
        let mut call = Failing { layer: &layer, runner, memory };
        let error = call.in_place(&[0.0; SHAPE.embed_dim]);
        assert_eq!(error, LayerError::Op(OpError::ZeroMeanSquare));
    });
}

// Alike for the norms of heads: a projection of zeros, without a bias.
#[test]
fn heads_of_zeros_without_an_epsilon() {
    let sample = Sample::small(14).with_head_norms(15);
    let zero = |error: &LayerError| *error == LayerError::Op(OpError::ZeroMeanSquare);
    let silent = |projection: &mut Projection, norm: &mut Option<HeadNorm>| {
        projection.bytes.fill(0);
        projection.bias = None;
        norm.as_mut().expect("a norm").eps = 0.0;
    };
    overflow::<f32>(&sample, |w| silent(&mut w.q, &mut w.q_norm), zero);
    overflow::<f32>(&sample, |w| silent(&mut w.k, &mut w.k_norm), zero);
}

#[test]
fn overflows_of_the_norms_of_heads() {
    let sample = Sample::small(16).with_head_norms(17);
    let gamma = |norm: &mut Option<HeadNorm>| norm.as_mut().expect("a norm").gamma.fill(f32::MAX);
    let score = |error: &LayerError| {
        matches!(error, LayerError::Op(OpError::NonFiniteScore { .. } | OpError::NonFinite { .. }))
    };
    overflow::<f32>(&sample, |weights| gamma(&mut weights.q_norm), score);
    overflow::<f32>(&sample, |weights| gamma(&mut weights.k_norm), score);
    let square =
        |error: &LayerError| matches!(error, LayerError::Op(OpError::MeanSquareOverflow { .. }));
    overflow::<f32>(&sample, |weights| set_bias(&mut weights.q.bias, 1e30), square);
    overflow::<f32>(&sample, |weights| set_bias(&mut weights.k.bias, 1e30), square);
}

#[test]
fn overflows_of_attention() {
    let score = |error: &LayerError| {
        matches!(error, LayerError::Op(OpError::NonFiniteScore { .. } | OpError::NonFinite { .. }))
    };
    let sample = Sample::small(6);
    overflow::<f32>(&sample, |weights| set_bias(&mut weights.q.bias, f32::MAX), score);
    overflow::<f32>(&sample, |weights| set_bias(&mut weights.k.bias, f32::MAX), score);
    // A value that the cache holds, but whose average is beyond what the O projection can take.
    overflow::<f32>(
        &sample,
        |weights| set_bias(&mut weights.v.bias, 3e38),
        |error| matches!(error, LayerError::Quant(QuantError::ScaleOverflow { .. })),
    );
}

// Kernel fault 8: attention values beyond 8.3e6 overflow the f16 scale, also where the average is finite.
#[test]
fn attention_values_beyond_the_scale() {
    let mut sample = Sample::small(7);
    sample.weights.v.bias = Some(vec![0.0; SHAPE.kv_width()]);
    let overflowing = 127.0 * 65_536.0;
    overflow::<f32>(
        &sample,
        // The other positions weigh little beside 1e12.
        |weights| set_bias(&mut weights.v.bias, overflowing * 1e5),
        |error| matches!(error, LayerError::Quant(QuantError::ScaleOverflow { .. })),
    );
    let spoiled = spoiled(&sample, |weights| set_bias(&mut weights.v.bias, overflowing));
    let layer = spoiled.layer();
    let mut memory = Memory::<f32>::new(&spoiled, 1);
    for runner in runners() {
        let mut call = Failing { layer: &layer, runner: &runner, memory: &mut memory };
        let error = call.in_place(&[0.0; SHAPE.embed_dim]);
        assert!(matches!(error, LayerError::Quant(QuantError::ScaleOverflow { .. })), "{error}");
    }
}

#[test]
fn rows_beyond_the_range_of_the_cache() {
    let sample = Sample::new(8, SHAPE, NO_ROPE);
    let range = |what: &'static str| {
        move |error: &LayerError| {
            let named = |found: &str| found == what;
            matches!(error, LayerError::Op(OpError::BeyondRange { what, .. }) if named(what))
        }
    };
    overflow::<f16>(&sample, |weights| set_bias(&mut weights.k.bias, 7e4), range("keys"));
    overflow::<f16>(&sample, |weights| set_bias(&mut weights.v.bias, -7e4), range("values"));
    overflow::<Q8_0>(&sample, |weights| set_bias(&mut weights.k.bias, 9e6), range("keys"));
    overflow::<Q8_0>(&sample, |weights| set_bias(&mut weights.v.bias, -9e6), range("values"));
}

#[test]
fn overflows_of_the_output() {
    let sample = Sample::small(9);
    let output = |error: &LayerError| matches!(error, LayerError::NotFinite { what: "output", .. });
    // The product and its bias are finite; only the residual takes the sum beyond.
    let spoiled = spoiled(&sample, |weights| set_bias(&mut weights.o.bias, f32::MAX));
    let layer = spoiled.layer();
    among_good_calls::<f32>(&sample, |runner, memory, token| {
        let input = sample.input(token);
        let mut residual = input.clone();
        *residual.last_mut().expect("elements") = f32::MAX;
        let mut call = Failing { layer: &layer, runner, memory };
        let error = call.apart(&input, Some(&residual), input.len());
        assert!(output(&error), "{error}");
    });
}

// Kernel fault 5 and case B26: a full context stops the call, and nothing is written.
#[test]
fn a_full_cache() {
    for capacity in [0, 1, 4, CHUNK] {
        let sample = Sample::small(10);
        let layer = sample.layer();
        for runner in runners() {
            let mut memory = Memory::<f32>::new(&sample, capacity);
            memory.rope = sample.table(capacity + 1);
            for token in 0..capacity {
                memory.decode(&layer, &runner, &sample.input(token)).expect("room");
            }
            let mut call = Failing { layer: &layer, runner: &runner, memory: &mut memory };
            let input = sample.input(capacity);
            let full = LayerError::CacheFull { len: capacity, capacity };
            assert_eq!(call.apart(&input, Some(&input), input.len()), full);
            assert_eq!(call.in_place(&input), full);

            // With more room the call gives what it would have given from the start.
            memory.cache.reserve(1).expect("memory");
            memory.scratch.reserve(capacity + 1).expect("memory");
            let got = memory.decode(&layer, &runner, &input).expect("room");
            let mut roomy = Memory::<f32>::new(&sample, capacity + 1);
            let all = (0..=capacity)
                .map(|token| roomy.decode(&layer, &runner, &sample.input(token)).expect("room"));
            assert_eq!(bits(&got), bits(&all.last().expect("a token")));
            assert!(memory.stored() == roomy.stored());
        }
    }
}

// Kernel fault 5: a position without angles.
#[test]
fn a_position_beyond_the_table() {
    let sample = Sample::small(11);
    let layer = sample.layer();
    among_good_calls::<f32>(&sample, |runner, memory, token| {
        let whole = memory.rope.take();
        memory.rope = sample.table(token);
        let mut call = Failing { layer: &layer, runner, memory };
        let (what, position, available) = ("RoPE table", token, token);
        let expected = LayerError::Position { what, position, available };
        assert_eq!(call.in_place(&sample.input(token)), expected);
        memory.rope = whole;
    });
}

// Kernel fault 4: parts that were made for another head dimension do not go together.
#[test]
fn parts_of_other_shapes() {
    let sample = Sample::small(12);
    let layer = sample.layer();
    let shape = |n_kv_heads, head_dim| CacheShape::new(n_kv_heads, head_dim).expect("a shape");
    let other_shapes = [
        Shape { n_heads: 8, ..SHAPE },
        Shape { embed_dim: 64, ..SHAPE },
        Shape { n_kv_heads: 4, ..SHAPE },
    ];
    among_good_calls::<f32>(&sample, |runner, memory, token| {
        let input = sample.input(token);
        let refused = |memory: &mut Memory<f32>, what: &str| {
            let mut call = Failing { layer: &layer, runner, memory };
            for error in [call.in_place(&input), call.apart(&input, None, input.len())] {
                let named =
                    matches!(&error, LayerError::Mismatch { what: part, .. } if *part == what);
                assert!(named, "{error}");
            }
        };
        for other in [shape(1, 32), shape(2, 30), shape(2, 34), shape(2, 64), shape(4, 32)] {
            let cache = KvCache::with_capacity(other, token + 1).expect("memory");
            let own = std::mem::replace(&mut memory.cache, cache);
            refused(memory, "the cache");
            memory.cache = own;
        }
        for other in other_shapes {
            let other =
                Sample { weights: Sample::new(1, other, NO_ROPE).weights, ..sample.clone() };
            let scratch = Scratch::new(other.shape(), 4).expect("memory");
            let own = std::mem::replace(&mut memory.scratch, scratch);
            refused(memory, "the scratch");
            memory.scratch = own;
        }
        for head_dim in [16, 64] {
            let table = RopeTable::new(RopeConfig::new(head_dim, 1e4), token + 1).expect("memory");
            let own = memory.rope.replace(table);
            refused(memory, "the RoPE table");
            memory.rope = own;
        }
    });
}
