//! Faults of the C kernel that this layer takes the place of, one test each where no other module has it.

use crate::sample::{Memory, NO_ROPE, ROPE, SHAPE, Sample, runners};
use ck_fused::{LayerShape, Qkv, Stages};
use ck_ops::{CHUNK, KvCache};
use ck_quant::Isa;
use ck_testing::compare::assert_bits_eq;
use ck_testing::generate::{Biases, Formats, Rng, Values, random_layer};
use ck_testing::oracle::{Rope, Shape};

// Kernel fault 4: the cache's stride was one width and its reads another. There is one head dimension, and what was
// stored is read back, of every head and position.
#[test]
fn rows_of_any_head_dimension_are_read_back_as_stored() {
    for head_dim in [72, 80, 96, 112] {
        let shape = Shape { embed_dim: 32, n_heads: 4, n_kv_heads: 2, head_dim };
        let sample = Sample::new(1, shape, Rope { width: head_dim, ..ROPE });
        let layer = sample.layer();
        for runner in runners() {
            let tokens = CHUNK + 2;
            let mut memory = Memory::<f32>::new(&sample, tokens);
            let mut scratch = Memory::<f32>::new(&sample, 1).scratch;
            let mut rows = Vec::new();
            for token in 0..tokens {
                let input = sample.input(token);
                let mut stages = Stages::new(&layer, runner.isa(), &mut scratch).expect("fits");
                let normed = stages.norm(&input).expect("finite").to_vec();
                let table = memory.rope.as_ref();
                let Qkv { k, v, .. } = stages.project(&normed, table, token).expect("finite");
                rows.push((k.to_vec(), v.to_vec()));
                memory.decode(&layer, &runner, &input).expect("finite");
            }
            for (token, (k, v)) in rows.iter().enumerate() {
                assert_bits_eq(&format!("keys of {token}"), &memory.keys(token), k);
                assert_bits_eq(&format!("values of {token}"), &memory.values(token), v);
            }
        }
    }
}

// Kernel fault 6: the mean divides by the real width. One block is the narrowest that any alignment would widen.
#[test]
fn the_norm_divides_by_the_real_width() {
    for embed_dim in [32, 96, 160, 576, 896] {
        let mut sample = Sample::new(2, Shape { embed_dim, ..SHAPE }, ROPE);
        sample.weights.gamma.fill(1.0);
        sample.weights.eps = 0.0;
        let layer = sample.layer();
        let mut memory = Memory::<f32>::new(&sample, 1);
        let mut stages = Stages::new(&layer, Isa::detect(), &mut memory.scratch).expect("fits");
        let got = stages.norm(&vec![-3.0; embed_dim]).expect("finite");
        assert_bits_eq(&format!("{embed_dim}"), got, &vec![-1.0; embed_dim]);
    }
}

// Kernel fault 9: positions times head dimension beyond 32 bits are sizes, not wrapped numbers. Nothing is
// allocated for them here; a cache whose size does not fit is an error.
#[test]
fn contexts_beyond_32_bits_do_not_wrap() {
    let shape = LayerShape::new(8192, 64, 64, 128).expect("a shape");
    let cache = shape.cache().expect("a shape of a cache");
    for positions in [usize::MAX, usize::MAX / 128, usize::MAX / (64 * 128 * 8), 1 << 46] {
        assert!(KvCache::<f32>::with_capacity(cache, positions).is_err(), "{positions}");
    }
}

// Kernel fault 10: parts that were documented as optional crashed when they were absent.
#[test]
fn optional_parts_may_be_absent() {
    let input = Values::Normal.row(&mut Rng::new(3), SHAPE.embed_dim);
    for biases in [Biases::NONE, Biases::QKV, Biases::ALL] {
        for rope in [NO_ROPE, ROPE] {
            let weights = random_layer(4, SHAPE, Formats::RECORDED, biases);
            let sample = Sample { weights, rope };
            let layer = sample.layer();
            for runner in runners() {
                let mut memory = Memory::<f32>::new(&sample, 4);
                assert_eq!(memory.rope.is_none(), rope == NO_ROPE);
                for _ in 0..2 {
                    let mut bare = vec![f32::NAN; input.len()];
                    layer
                        .decode(&runner, memory.context(), &input, None, &mut bare)
                        .expect("finite");
                    memory.cache.truncate(memory.cache.len() - 1);
                    let whole = memory.decode(&layer, &runner, &input).expect("finite");
                    let sum: Vec<f32> = bare.iter().zip(&input).map(|(y, x)| y + x).collect();
                    assert_bits_eq(&format!("{biases:?} {rope:?}"), &whole, &sum);
                }
            }
        }
    }
}
