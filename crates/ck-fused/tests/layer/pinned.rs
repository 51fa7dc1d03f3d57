//! The bits of the whole block, as they were when they were pinned.

use crate::sample::{Memory, SHAPE, Sample, YARN};
use ck_fused::Runner;
use ck_ops::{CHUNK, CacheElement, Q8_0};
use ck_quant::Isa;
use ck_testing::compare::assert_pinned;
use ck_testing::generate::{Rng, Values};
use half::f16;

/// The outputs of three tokens on a history that ends within its second chunk, one after the other.
fn decode<E: CacheElement>(isa: Isa, sample: &Sample) -> Vec<f32> {
    let stored = CHUNK + 7;
    let width = SHAPE.n_kv_heads * SHAPE.head_dim;
    let rows = Values::Normal.row(&mut Rng::new(3), 2 * stored * width);
    let mut memory = Memory::<E>::new(sample, stored + 3);
    for row in rows.chunks_exact(2 * width) {
        memory.store(&row[..width], &row[width..]);
    }
    let (layer, runner) = (sample.layer(), Runner::serial(isa));
    let output = |token| memory.decode(&layer, &runner, &sample.input(token)).unwrap();
    (0..3).flat_map(output).collect()
}

#[test]
fn decoding() {
    let sample = Sample::new(4, SHAPE, YARN).with_head_norms(5);
    assert_pinned("inputs", ["any"], 0x68bc_eb7c_fcba_7db5, |_| {
        (0..3).flat_map(|token| sample.input(token)).collect()
    });
    assert_pinned("gamma", ["any"], 0x9613_8bfa_2f9c_d400, |_| sample.weights.gamma.clone());
    assert_pinned("f32", Isa::available(), 0xe049_5fa4_dd7a_1cda, |isa| {
        decode::<f32>(isa, &sample)
    });
    assert_pinned("f16", Isa::available(), 0xccd2_bc1b_47d6_a577, |isa| {
        decode::<f16>(isa, &sample)
    });
    assert_pinned("q8_0", Isa::available(), 0x0d8a_873a_04b9_0423, |isa| {
        decode::<Q8_0>(isa, &sample)
    });
}
