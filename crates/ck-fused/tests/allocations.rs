//! A decode call allocates nothing, whether it succeeds or fails.

use ck_fused::{
    DecodeContext, DecodeLayer, LayerShape, LayerWeights, Norm, Projection, Projections, Runner,
    Scratch,
};
use ck_ops::{CHUNK, CacheElement, KvCache, Q8_0, RopeConfig, RopeTable};
use ck_quant::{Format, Isa, Matrix};
use ck_testing::alloc::{Allocated, CountingAllocator};
use ck_testing::run::all_or_few;
use half::f16;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

const EMBED: usize = 96;

/// Calls `run` with a small layer, and with the same one with norms of its heads.
fn with_layers(run: impl Fn(&DecodeLayer<'_>)) {
    let shape = LayerShape::new(EMBED, 6, 2, 32).expect("a shape");
    let values: Vec<f32> = (0..192 * 192).map(|i| (i as f32).sin() / 8.0).collect();
    let bytes = Format::Q5_0.quantize(&values).expect("finite");
    let matrix = |rows: usize, columns: usize| {
        let len = Format::Q5_0.matrix_bytes(rows, columns).expect("a size");
        Matrix::new(Format::Q5_0, rows, columns, &bytes[..len]).expect("whole rows")
    };
    let weights = LayerWeights::new(
        Norm::new(vec![1.0; EMBED], 1e-6),
        Projections {
            q: Projection::new(matrix(192, EMBED)).with_bias(vec![0.5; 192]),
            k: Projection::new(matrix(64, EMBED)).with_bias(vec![0.5; 64]),
            v: Projection::new(matrix(64, EMBED)),
            o: Projection::new(matrix(EMBED, 192)),
        },
    );
    let norm = || Norm::new(vec![1.0; 32], 1e-6);
    let with_norms = weights.clone().with_qk_norm(norm(), norm());
    for weights in [weights, with_norms] {
        run(&DecodeLayer::new(shape, weights).expect("a layer"));
    }
}

/// A rotation, an empty cache and scratch for `capacity` positions of the layer.
fn memory<E: CacheElement>(
    layer: &DecodeLayer<'_>,
    capacity: usize,
) -> (RopeTable, KvCache<E>, Scratch<E>) {
    let shape = layer.shape();
    let rope = RopeTable::new(RopeConfig::new(32, 1e4), capacity).expect("memory");
    let cache = KvCache::with_capacity(shape.cache().expect("a shape"), capacity);
    (rope, cache.expect("memory"), Scratch::new(shape, capacity).expect("memory"))
}

/// Every token of two chunks and a bit (of one where the run is slow), in both forms of the call.
fn good_calls<E: CacheElement>() {
    with_layers(|layer| {
        for isa in Isa::available() {
            let runner = Runner::serial(isa);
            let tokens = all_or_few(2 * CHUNK, CHUNK) + 2;
            let (rope, mut cache, mut scratch) = memory::<E>(layer, tokens);
            let mut hidden: Vec<f32> = (0..EMBED).map(|i| (i as f32).cos()).collect();
            let mut output = vec![0.0; EMBED];
            for token in 0..tokens {
                let ((), used) = ALLOCATOR.on_this_thread(|| {
                    let context = DecodeContext {
                        rope: Some(&rope),
                        cache: &mut cache,
                        scratch: &mut scratch,
                    };
                    if token % 2 == 0 {
                        let residual = (token % 4 == 0).then_some(&hidden[..]);
                        layer.decode(&runner, context, &hidden, residual, &mut output)
                    } else {
                        layer.decode_in_place(&runner, context, &mut hidden)
                    }
                    .expect("a good call");
                });
                assert_eq!(used, Allocated::default(), "{isa:?}, token {token}");
            }
        }
    });
}

#[test]
fn good_calls_allocate_nothing() {
    good_calls::<f32>();
    good_calls::<f16>();
    good_calls::<Q8_0>();
}

/// Errors that carry numbers only; one that describes two shapes in words may allocate them.
#[test]
fn failing_calls_allocate_nothing() {
    with_layers(|layer| {
        for isa in Isa::available() {
            let runner = Runner::serial(isa);
            let (rope, mut cache, mut scratch) = memory::<f32>(layer, 1);
            let mut refused = |hidden: &mut [f32], rope: &RopeTable, what: &str| {
                let (result, used) = ALLOCATOR.on_this_thread(|| {
                    let context = DecodeContext {
                        rope: Some(rope),
                        cache: &mut cache,
                        scratch: &mut scratch,
                    };
                    layer.decode_in_place(&runner, context, hidden)
                });
                assert_eq!(result.is_ok(), what == "nothing", "{what}: {result:?}");
                assert_eq!(used, Allocated::default(), "{isa:?}, {what}");
            };
            let mut hidden = vec![1.0; EMBED];
            refused(&mut hidden[1..], &rope, "the length");
            hidden[EMBED - 1] = f32::NAN;
            refused(&mut hidden, &rope, "a NaN");
            refused(&mut [f32::MAX; EMBED], &rope, "an overflow");
            let empty = RopeTable::new(RopeConfig::new(32, 1e4), 0).expect("memory");
            refused(&mut [1.0; EMBED], &empty, "the position");
            refused(&mut [1.0; EMBED], &rope, "nothing");
            refused(&mut [1.0; EMBED], &rope, "a full cache");
        }
    });
}

#[test]
fn reserving_what_is_there_allocates_nothing() {
    with_layers(|layer| {
        let (_, _, mut scratch) = memory::<f32>(layer, CHUNK);
        let (reserved, used) = ALLOCATOR.on_this_thread(|| scratch.reserve(CHUNK));
        reserved.expect("nothing to do");
        assert_eq!(used, Allocated::default());
    });
}
