//! The bits of every operation, as they were when they were pinned: an order of operations that changes on all levels
//! alike stays within the oracle's bounds, but not here.

use ck_isa::Isa;
use ck_ops::{
    AttendScratch, Attention, CHUNK, CacheElement, KvCache, Llama3, NewPosition, Pairing, Q8_0,
    RopeConfig, RopeScaling, RopeTable, Yarn,
};
use ck_testing::compare::assert_pinned;
use ck_testing::generate::Rng;
use half::f16;

fn numbers(seed: u64, n: usize) -> Vec<f32> {
    let mut rng = Rng::new(seed);
    (0..n).map(|_| rng.uniform(-2.0, 2.0)).collect()
}

// The numbers are made by additions and multiplications, but what makes them can be changed.
#[test]
fn the_inputs_are_those_of_the_pins() {
    assert_pinned("inputs", ["any"], 0x82c5_f34d_c155_4096, |_| numbers(1, 1000));
}

#[test]
fn rms_norm() {
    assert_pinned("a tail of 7", Isa::available(), 0x7f2d_ce6a_1a14_ed45, |isa| {
        let mut out = vec![f32::NAN; 903];
        ck_ops::rms_norm(isa, &numbers(1, 903), &numbers(2, 903), 1e-6, &mut out).unwrap();
        out
    });
}

#[test]
fn exp_and_tanh() {
    let numbers: Vec<f32> = numbers(1, 1000).iter().map(|x| 20.0 * x).collect();
    let apply = |f: fn(f32) -> f32| numbers.iter().map(|&x| f(x)).collect();
    assert_pinned("exp", ["any"], 0x219b_5d02_6f52_e4d2, |_| apply(ck_ops::exp));
    assert_pinned("tanh", ["any"], 0xd974_e9a8_b7c4_e67a, |_| apply(ck_ops::tanh));
}

#[test]
fn rope() {
    let plain = || RopeConfig::new(128, 1e6);
    let yarn = Yarn::new(4.0, 512).with_betas(16.0, 2.0);
    let factors: Vec<f32> = numbers(3, 64).iter().map(|x| x + 3.0).collect();
    for (name, config, pinned) in [
        ("split half", plain(), 0x3a09_63f0_e487_728c),
        (
            "interleaved, 96 of 128",
            plain().with_pairing(Pairing::Interleaved).with_rot_dim(96),
            0x5c8b_5aae_f792_93af,
        ),
        ("factors", plain().with_frequency_factors(factors), 0x05d4_2db9_daf6_c1f2),
        (
            "linear",
            plain().with_scaling(RopeScaling::Linear { factor: 4.0 }),
            0x32ff_5ecc_c193_cbdf,
        ),
        (
            "llama 3",
            plain().with_scaling(RopeScaling::Llama3(Llama3::new(8.0, 512))),
            0xa2ec_8c53_1be3_da3b,
        ),
        (
            "yarn",
            plain().with_scaling(RopeScaling::Yarn(yarn)).with_attn_factor(1.125),
            0x0d9c_daa8_8c68_ea97,
        ),
    ] {
        let table = RopeTable::new(config, 2000).unwrap();
        assert_pinned(name, Isa::available(), pinned, |isa| {
            let mut heads = numbers(1, 3 * 5 * 128);
            for (position, heads) in [1, 299, 1999].into_iter().zip(heads.chunks_exact_mut(5 * 128))
            {
                table.apply(isa, position, heads).unwrap();
            }
            heads
        });
    }
}

/// One token's attention over a context that ends within its third chunk.
fn attend<E: CacheElement>(isa: Isa, attention: &Attention) -> Vec<f32> {
    let width = attention.n_kv_heads() * attention.head_dim();
    let positions = 2 * CHUNK + 90;
    let rows = numbers(5, 2 * positions * width);
    let mut cache = KvCache::<E>::with_capacity(attention.shape(), positions).unwrap();
    let mut new = NewPosition::new(attention.shape()).unwrap();
    for row in rows.chunks_exact(2 * width) {
        let (key, value) = row.split_at(width);
        new.set(isa, key, value).unwrap();
        if cache.len() + 1 < positions {
            cache.append(&new).unwrap();
        }
    }
    let q = numbers(6, attention.n_heads() * attention.head_dim());
    let mut scratch = AttendScratch::new(attention).unwrap();
    let mut out = vec![f32::NAN; q.len()];
    ck_ops::flash_decode(isa, attention, &cache, Some(&new), &q, &mut scratch, &mut out).unwrap();
    out
}

#[test]
fn flash_decode() {
    let plain = Attention::new(10, 2, 64).unwrap();
    let capped = plain.clone().with_soft_cap(3.0).unwrap();
    let windowed = plain.clone().with_window(300).unwrap().with_sinks(5);
    for (name, attention, [in_f32, in_f16, in_q8_0]) in [
        (
            "all positions",
            plain,
            [0x8168_d110_cbc0_31c5, 0xcdb9_a23d_e36c_8868, 0x2ba5_b32c_a49b_3ea7],
        ),
        (
            "a soft cap",
            capped,
            [0x37eb_b6bd_c11b_9d9f, 0x3aed_728f_9b0c_4b62, 0xaf9e_58ea_3c30_c057],
        ),
        (
            "a window and sinks",
            windowed,
            [0x9b6a_8d08_7b3f_a556, 0x98c3_2e6f_e2f7_a189, 0xfb11_c9ea_2c9c_8175],
        ),
    ] {
        let context = |element| format!("{name}, {element}");
        assert_pinned(&context("f32"), Isa::available(), in_f32, |isa| {
            attend::<f32>(isa, &attention)
        });
        assert_pinned(&context("f16"), Isa::available(), in_f16, |isa| {
            attend::<f16>(isa, &attention)
        });
        assert_pinned(&context("q8_0"), Isa::available(), in_q8_0, |isa| {
            attend::<Q8_0>(isa, &attention)
        });
    }
}
