//! The same bits for every strategy, team and level. Case B44: the result does not depend on threads.

use super::team::{LARGEST, Run, name, runners};
use crate::sample::{ROPE, Sample, YARN};
use ck_fused::Runner;
use ck_ops::{CacheElement, Q8_0};
use ck_quant::Isa;
use ck_testing::generate::{Biases, Formats, random_layer};
use ck_testing::oracle::{BLOCK, Pairing, Rope, Shape};
use ck_testing::run::all_or_few;
use ck_threadpool::ThreadPool;
use half::f16;

/// Shapes with few and many KV heads, heads whose halves are no whole panels, and heads that fill a
/// quantization block only together.
const SHAPES: [Shape; 6] = [
    Shape { embed_dim: 96, n_heads: 4, n_kv_heads: 2, head_dim: 32 },
    Shape { embed_dim: 64, n_heads: 7, n_kv_heads: 1, head_dim: 64 },
    Shape { embed_dim: 64, n_heads: 9, n_kv_heads: 3, head_dim: 32 },
    Shape { embed_dim: 32, n_heads: 4, n_kv_heads: 4, head_dim: 72 },
    Shape { embed_dim: 160, n_heads: 16, n_kv_heads: 8, head_dim: 6 },
    Shape { embed_dim: 32, n_heads: 11, n_kv_heads: 1, head_dim: 32 },
];

/// Tokens decoded in a row.
const TOKENS: usize = 3;

fn rope(shape: Shape) -> Rope {
    Rope { width: shape.head_dim, ..ROPE }
}

/// Decodes with every runner and compares with serial scalar code on the unpacked layer.
fn check<E: CacheElement>(pool: &ThreadPool, sample: &Sample, stored: usize, context: &str) {
    let layer = sample.layer();
    let packed = layer.pack().unwrap();
    let capacity = stored + TOKENS;
    let mut run = Run::<E>::new(sample, stored, capacity);
    let right = run.sequence(sample, &layer, &Runner::serial(Isa::Scalar), TOKENS);
    for runner in Isa::available().map(Runner::serial).chain(runners(pool)) {
        for (form, layer) in [("rows", &layer), ("panels", &packed)] {
            let mut run = Run::<E>::new(sample, stored, capacity);
            let got = run.sequence(sample, layer, &runner, TOKENS);
            assert!(got == right, "{context}, {stored} stored, {form}: {}", name(&runner));
        }
    }
}

#[test]
fn every_strategy_team_and_level_gives_the_bits_of_serial_scalar_code() {
    let pool = ThreadPool::new(LARGEST).unwrap();
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        let sample = Sample::new(seed as u64, shape, rope(shape));
        for stored in [0, 1, 254] {
            check::<f32>(&pool, &sample, stored, &format!("f32, {shape:?}"));
            check::<f16>(&pool, &sample, stored, &format!("f16, {shape:?}"));
            if shape.head_dim.is_multiple_of(BLOCK) {
                check::<Q8_0>(&pool, &sample, stored, &format!("q8_0, {shape:?}"));
            }
        }
    }
    println!(
        "levels: {}",
        Isa::available().map(|isa| isa.to_string()).collect::<Vec<_>>().join(" ")
    );
}

#[test]
fn contexts_of_several_chunks_give_the_same_bits() {
    let pool = ThreadPool::new(LARGEST).unwrap();
    let stored = all_or_few(1023, 511);
    for shape in [SHAPES[1], SHAPES[2]] {
        let sample = Sample::new(3, shape, rope(shape));
        check::<f32>(&pool, &sample, stored, &format!("f32, {shape:?}"));
        check::<f16>(&pool, &sample, stored, &format!("f16, {shape:?}"));
        check::<Q8_0>(&pool, &sample, stored, &format!("q8_0, {shape:?}"));
    }
}

#[test]
fn formats_biases_and_pairings_change_nothing_about_it() {
    let pool = ThreadPool::new(LARGEST).unwrap();
    let shape = SHAPES[0];
    for (index, formats) in Formats::all().into_iter().enumerate() {
        let biases = if index % 2 == 0 { Biases::NONE } else { Biases::ALL };
        let pairing = Pairing::ALL[index / 2 % 2];
        let rope = Rope { pairing, width: 16 + index % 2 * 16, ..ROPE };
        let weights = random_layer(index as u64, shape, formats, biases);
        check::<f32>(&pool, &Sample { weights, rope }, 5, &format!("{formats:?}"));
    }
}

#[test]
fn norms_of_heads_and_scalings_change_nothing_about_it() {
    let pool = ThreadPool::new(LARGEST).unwrap();
    for (seed, shape) in [SHAPES[0], SHAPES[1], SHAPES[4]].into_iter().enumerate() {
        let rope = Rope { width: shape.head_dim, ..YARN };
        let sample = Sample::new(seed as u64, shape, rope).with_head_norms(30);
        for stored in [0, 254] {
            check::<f32>(&pool, &sample, stored, &format!("f32, {shape:?}"));
            check::<f16>(&pool, &sample, stored, &format!("f16, {shape:?}"));
            if shape.head_dim.is_multiple_of(BLOCK) {
                check::<Q8_0>(&pool, &sample, stored, &format!("q8_0, {shape:?}"));
            }
        }
    }
}

// Case B44: ten runs, the same bits.
#[test]
fn a_run_again_gives_the_same_bits() {
    let pool = ThreadPool::new(LARGEST).unwrap();
    let sample = Sample::small(1);
    let layer = sample.layer();
    let again = all_or_few(9, 2);
    for &stored in all_or_few(&[0, 32, 256, 999][..], &[0, 256]) {
        for runner in runners(&pool).filter(|runner| runner.isa() == Isa::detect()) {
            let run = || {
                Run::<f32>::new(&sample, stored, stored + 1).sequence(&sample, &layer, &runner, 1)
            };
            let first = run();
            assert!((0..again).all(|_| run() == first), "{stored} stored: {}", name(&runner));
        }
    }
}

#[test]
fn a_call_from_inside_a_dispatch_of_the_same_pool_gives_the_same_bits() {
    let pool = ThreadPool::new(4).unwrap();
    let sample = Sample::small(2);
    let layer = sample.layer();
    let mut run = Run::<f32>::new(&sample, 300, 301);
    let right = run.sequence(&sample, &layer, &Runner::serial(Isa::Scalar), 1);
    for &strategy in super::team::PARALLEL {
        let runner = Runner::new(Isa::detect(), &pool).with_strategy(strategy);
        pool.run(|team| {
            let mut run = Run::<f32>::new(&sample, 300, 301);
            let got = run.sequence(&sample, &layer, &runner, 1);
            assert!(got == right, "{strategy}, member {}", team.index());
        });
    }
}
