//! Rotations for long contexts: by hand, against the oracle, and what is refused.

use super::{check_within, pairing, rotated};
use crate::{Llama3, OpError, Pairing, RopeConfig, RopeScaling, RopeTable, Yarn};
use ck_isa::Isa;
use ck_testing::compare::assert_bits_eq;
use ck_testing::generate::{Rng, Values};
use ck_testing::oracle::{Rope, Scaling};
use proptest::prelude::*;
use std::sync::LazyLock;

/// The frequencies of a configuration, and what a scaling made of each: a quotient.
fn slowed(config: RopeConfig, scaling: RopeScaling) -> Vec<f64> {
    let plain = RopeTable::new(config.clone(), 1).unwrap().frequencies;
    let scaled = RopeTable::new(config.with_scaling(scaling), 1).unwrap().frequencies;
    plain.iter().zip(scaled).map(|(plain, scaled)| plain / scaled).collect()
}

fn assert_near(got: f64, expected: f64, context: &str) {
    assert!((got - expected).abs() < 1e-6 * expected, "{context}: {got} instead of {expected}");
}

// Llama 3.1: a pair turns 8192 f / 2 pi times in the original context, f = 500000^(-i / 64). That is more than 4 up to
// i = 28 (28.2), and less than 1 from i = 35 on (34.98). Pair 32: f = 1 / sqrt(500000), 1.843849 turns, so
// s = 0.281283 and 1 / ((1 - s) / 8 + s) = 2.694530.
#[test]
fn llama_3_1_by_hand() {
    let scaling = RopeScaling::Llama3(Llama3::new(8.0, 8192));
    let slowed = slowed(RopeConfig::new(128, 5e5), scaling);
    assert!(slowed[..=28].iter().all(|&by| by == 1.0), "{slowed:?}");
    assert!(slowed[35..].iter().all(|&by| by == 8.0), "{slowed:?}");
    assert_near(slowed[29], 1.207_484, "pair 29");
    assert_near(slowed[32], 2.694_530, "pair 32");
    assert_near(slowed[34], 5.257_327, "pair 34");
}

// Llama 3.2 1B: heads of 64, factor 32.
#[test]
fn llama_3_2_by_hand() {
    let scaling = RopeScaling::Llama3(Llama3::new(32.0, 8192).with_freq_factors(1.0, 4.0));
    let slowed = slowed(RopeConfig::new(64, 5e5), scaling);
    assert!(slowed[..=14].iter().all(|&by| by == 1.0), "{slowed:?}");
    assert!(slowed[18..].iter().all(|&by| by == 32.0), "{slowed:?}");
    for (pair, by) in [(15, 1.651_329), (16, 3.292_262), (17, 9.666_729)] {
        assert_near(slowed[pair], by, &format!("pair {pair}"));
    }
}

// The pair that turns 122 times in 1000 positions is 6 ln(1000 / (122 tau)) / (2 ln 2) = 1.15, the one that turns 19.9 times
// 9.0, which the width limits to 5. The ramp goes from 1 to 5, pair 2 is a quarter along it: 1 / (3/4 + 1/4 / 4) = 1.230769.
#[test]
fn the_ramp_of_yarn_ends_within_the_width() {
    let yarn = Yarn::new(4.0, 1000).with_betas(122.0, 19.9);
    let slowed = slowed(RopeConfig::new(6, 2.0), RopeScaling::Yarn(yarn));
    assert_eq!(slowed[..2], [1.0, 1.0]);
    assert_near(slowed[2], 1.230_769, "pair 2");
}

// Qwen2.5 and Qwen3 as published for long contexts: factor 4 on 32768 positions, base 10^6, heads of 128. 32 turns in
// 32768 positions are at pair 128 ln(32768 / 64 pi) / (2 ln 10^6) = 23.596, one turn is at pair 39.651; so
// the ramp goes from 23 to 40. Pair 31 keeps 1 - 8/17 of itself: 9/17 + 8/17 / 4 = 11/17.
#[test]
fn yarn_of_qwen_by_hand() {
    let yarn = Yarn::new(4.0, 32_768);
    let slowed = slowed(RopeConfig::new(128, 1e6), RopeScaling::Yarn(yarn));
    assert!(slowed[..=23].iter().all(|&by| by == 1.0), "{slowed:?}");
    assert!(slowed[40..].iter().all(|&by| by == 4.0), "{slowed:?}");
    assert_near(slowed[31], 17.0 / 11.0, "pair 31");
    assert_near(slowed[24], 1.0 / (16.0 / 17.0 + 0.25 / 17.0), "pair 24");
    // 1 + 0.1 ln 4.
    assert_near(yarn.magnitude(), 1.138_629_436, "magnitude");
}

// DeepSeek's 40 and 0.707: (1 + 0.1 ln 40) / (1 + 0.0707 ln 40) = 1.368888 / 1.260802.
#[test]
fn the_magnitude_of_yarn_by_hand() {
    let yarn = Yarn::new(40.0, 4096);
    assert_near(yarn.magnitude(), 1.368_887_945, "whole");
    assert_near(yarn.with_log_multiplier(0.707).magnitude(), 1.085_726_399, "a part taken back");
    assert_eq!(yarn.with_log_multiplier(1.0).magnitude(), 1.0);
    assert_eq!(yarn.with_ext_factor(0.0).magnitude(), 1.0);
    for factor in [1.0, 0.5] {
        assert_eq!(Yarn::new(factor, 4096).magnitude(), 1.0);
    }
}

// Powers of two are exact, so a position of the scaled table is another one of the plain table, by bits.
#[test]
fn a_linear_scaling_turns_a_position_back() {
    let config = RopeConfig::new(64, 1e6);
    let head = Values::Normal.row(&mut Rng::new(1), 64);
    for (factor, position, plain) in [(4.0, 400, 100), (0.5, 50, 100), (1.0, 100, 100)] {
        let scaled = config.clone().with_scaling(RopeScaling::Linear { factor });
        let expected = rotated(config.clone(), plain, &head);
        assert_bits_eq(&format!("{factor}"), &rotated(scaled, position, &head), &expected);
        let factors = config.clone().with_frequency_factors([factor as f32; 32]);
        assert_bits_eq("factors", &rotated(factors, position, &head), &expected);
    }
}

#[test]
fn every_pair_has_its_own_factor() {
    let config = RopeConfig::new(8, 1e4);
    let factors = config.clone().with_frequency_factors([1.0, 2.0, 4.0, 0.5]);
    let plain = RopeTable::new(config, 1).unwrap().frequencies;
    let table = RopeTable::new(factors.clone(), 1).unwrap().frequencies;
    assert_eq!(table, [plain[0], plain[1] / 2.0, plain[2] / 4.0, plain[3] * 2.0]);
    let both = factors.with_scaling(RopeScaling::Linear { factor: 2.0 });
    let both = RopeTable::new(both, 1).unwrap().frequencies;
    assert_eq!(both, table.iter().map(|f| f / 2.0).collect::<Vec<_>>());
}

// A file of Llama 3 carries the rule's result in f32: the same table, to the rounding of the factors.
#[test]
fn the_rule_of_llama_3_is_that_of_the_factors_in_its_files() {
    let config = RopeConfig::new(128, 5e5).with_pairing(Pairing::Interleaved);
    let scaling = RopeScaling::Llama3(Llama3::new(8.0, 8192));
    let factors: Vec<f32> =
        slowed(config.clone(), scaling).iter().map(|&factor| factor as f32).collect();
    let rule = RopeTable::new(config.clone().with_scaling(scaling), 1).unwrap().frequencies;
    let file = RopeTable::new(config.with_frequency_factors(factors), 1).unwrap().frequencies;
    for (rule, file) in rule.iter().zip(&file) {
        assert!((rule - file).abs() <= rule * f64::from(f32::EPSILON) / 2.0, "{rule} {file}");
    }
}

#[test]
fn cosines_and_sines_are_multiplied_at_every_position() {
    let plain = RopeConfig::new(4, 1e4);
    let head = [1.0, -2.0, 3.0, 0.25];
    let twice = |head: &[f32]| head.iter().map(|x| 2.0 * x).collect::<Vec<f32>>();
    for position in [0, 1, 77] {
        let longer = rotated(plain.clone().with_attn_factor(2.0), position, &head);
        assert_bits_eq("twice", &longer, &twice(&rotated(plain.clone(), position, &head)));
    }
    let yarn = RopeScaling::Yarn(Yarn::new(4.0, 64));
    let longer = rotated(plain.with_scaling(yarn).with_attn_factor(0.5), 0, &[1.0; 4]);
    assert_bits_eq("position 0", &longer, &[(0.5 * 1.138_629_436_111_989_f64) as f32; 4]);
}

#[test]
fn the_bound_sees_faults_of_a_scaling() {
    let head = Values::Normal.row(&mut Rng::new(2), 128);
    let config = RopeConfig::new(128, 1e6);
    let yarn = Yarn::new(4.0, 32_768);
    let scaling = |ends, model| Scaling::llama_cpp_yarn(4.0, 32_768.0, ends, 1.0, (model, 0.0));
    let rope = Rope::new(pairing(&config), 128, 1e6);
    let right = rope.with_scaling(scaling((32.0, 1.0), 1.0));
    let at = |yarn| rotated(config.clone().with_scaling(RopeScaling::Yarn(yarn)), 5000, &head);
    assert_eq!(check_within(&at(yarn), &right, 5000, &head), Ok(()));
    let wrong = [
        rope,
        rope.with_scaling(scaling((32.0, 1.0), 1.000_01)),
        rope.with_scaling(scaling((28.0, 1.0), 1.0)),
        rope.with_scaling(scaling((32.0, 1.2), 1.0)),
    ];
    for wrong in wrong {
        assert!(check_within(&at(yarn), &wrong, 5000, &head).is_err(), "{wrong:?}");
    }
    for other in [Yarn::new(4.001, 32_768), yarn.with_ext_factor(0.99)] {
        assert!(check_within(&at(other), &right, 5000, &head).is_err(), "{other:?}");
    }
}

#[test]
fn the_last_position_of_a_long_context_agrees_with_the_oracle() {
    let position = ck_testing::run::all_or_few(131_071, 8191);
    let head = Values::Normal.row(&mut Rng::new(3), 16);
    let config = RopeConfig::new(16, 5e5);
    let rope = Rope::new(pairing(&config), 16, 5e5);
    let (factor, context) = (16.0, 8192.0);
    let yarn = Scaling::llama_cpp_yarn(factor, context, (32.0, 1.0), 1.0, (1.0, 0.0));
    let llama3 = Scaling::Llama3 { factor, low: 1.0, high: 4.0, context };
    for (scaling, theirs) in [
        (RopeScaling::None, Scaling::NONE),
        (RopeScaling::Linear { factor }, Scaling::linear(factor)),
        (RopeScaling::Llama3(Llama3::new(factor, 8192)), llama3),
        (RopeScaling::Yarn(Yarn::new(factor, 8192)), yarn),
    ] {
        let got = rotated(config.clone().with_scaling(scaling), position, &head);
        let rope = rope.with_scaling(theirs);
        assert_eq!(check_within(&got, &rope, position, &head), Ok(()), "{scaling:?}");
        assert!(check_within(&got, &rope, position - 1, &head).is_err(), "{scaling:?}");
    }
}

#[test]
fn a_scaled_table_that_grows_keeps_its_bits() {
    let yarn = RopeScaling::Yarn(Yarn::new(4.0, 64));
    let config = RopeConfig::new(64, 1e6).with_scaling(yarn).with_attn_factor(1.5);
    let mut table = RopeTable::new(config.clone(), 3).unwrap();
    table.reserve(200).unwrap();
    let whole = RopeTable::new(config, 200).unwrap();
    assert_bits_eq("a table that grew", &table.rows, &whole.rows);
}

#[test]
fn scalings_that_make_no_sense_are_refused() {
    let refused = |scaling| {
        let error = RopeTable::new(RopeConfig::new(64, 1e4).with_scaling(scaling), 1).unwrap_err();
        let OpError::RopeScaling { what, .. } = error else { panic!("{scaling:?}: {error}") };
        assert!(error.to_string().contains(what), "{error}");
        what
    };
    let llama3 = Llama3::new(8.0, 8192);
    let yarn = Yarn::new(4.0, 4096);
    for bad in [0.0, -1.0, f64::INFINITY, f64::NAN] {
        assert_eq!(refused(RopeScaling::Linear { factor: bad }), "factor");
        assert_eq!(refused(RopeScaling::Llama3(Llama3::new(bad, 8192))), "factor");
        assert_eq!(refused(RopeScaling::Yarn(Yarn::new(bad, 4096))), "factor");
        let low = llama3.with_freq_factors(bad, 4.0);
        assert_eq!(refused(RopeScaling::Llama3(low)), "low_freq_factor");
        let high = llama3.with_freq_factors(1.0, bad);
        assert_eq!(refused(RopeScaling::Llama3(high)), "high_freq_factor");
        assert_eq!(refused(RopeScaling::Yarn(yarn.with_betas(bad, 1.0))), "beta_fast");
        assert_eq!(refused(RopeScaling::Yarn(yarn.with_betas(32.0, bad))), "beta_slow");
    }
    for high in [1.0, 0.5] {
        let narrow = llama3.with_freq_factors(1.0, high);
        assert_eq!(refused(RopeScaling::Llama3(narrow)), "high_freq_factor");
    }
    assert_eq!(refused(RopeScaling::Llama3(Llama3::new(8.0, 0))), "original_context");
    assert_eq!(refused(RopeScaling::Yarn(Yarn::new(8.0, 0))), "original_context");
    assert_eq!(refused(RopeScaling::Yarn(yarn.with_betas(1.0, 2.0))), "beta_fast");
    for bad in [-0.1, 1.1, f64::NAN] {
        assert_eq!(refused(RopeScaling::Yarn(yarn.with_ext_factor(bad))), "ext_factor");
    }
    for bad in [-0.1, f64::INFINITY, f64::NAN] {
        assert_eq!(refused(RopeScaling::Yarn(yarn.with_log_multiplier(bad))), "log_multiplier");
    }
    for base in [1.0, 0.5] {
        let config = RopeConfig::new(64, base).with_scaling(RopeScaling::Yarn(yarn));
        let error = config.check().unwrap_err();
        assert!(matches!(error, OpError::RopeScaling { found, .. } if found == base), "{error}");
    }
}

#[test]
fn factors_and_magnitudes_that_make_no_sense_are_refused() {
    let new = |config| RopeTable::new(config, 1).map(|_| ()).unwrap_err();
    let config = RopeConfig::new(8, 1e4);
    for found in [0, 3, 5, 8] {
        let error = new(config.clone().with_frequency_factors(vec![1.0; found]));
        let what = "rope frequency factors";
        assert_eq!(error, OpError::Length { what, expected: 4, found });
    }
    for bad in [0.0, -1.0, f32::INFINITY, f32::NAN] {
        let error = new(config.clone().with_frequency_factors([1.0, 1.0, bad, 1.0]));
        assert!(matches!(error, OpError::RopeFactor { pair: 2, .. }), "{error}");
    }
    for bad in [0.0, -1.0, f64::INFINITY, f64::NAN, 1e39, 1e-39] {
        let error = new(config.clone().with_attn_factor(bad));
        assert!(matches!(error, OpError::RopeMagnitude { .. }), "{bad}: {error}");
    }
}

// Angles beyond f64 would be NaN in the table.
#[test]
fn frequencies_without_an_end_are_refused() {
    let tiny = f64::MIN_POSITIVE;
    let hostile = [
        RopeConfig::new(64, tiny),
        RopeConfig::new(64, 1e4).with_scaling(RopeScaling::Linear { factor: tiny }),
        RopeConfig::new(64, 1e4).with_scaling(RopeScaling::Linear { factor: 1e-307 }),
        RopeConfig::new(64, 1e4).with_scaling(RopeScaling::Llama3(Llama3::new(tiny / 4.0, 1))),
        RopeConfig::new(64, 1e4).with_scaling(RopeScaling::Yarn(Yarn::new(tiny / 4.0, 1))),
    ];
    for config in hostile {
        let error = config.check().unwrap_err();
        assert!(matches!(error, OpError::RopeFrequency { .. }), "{config:?}: {error}");
        assert!(RopeTable::new(config, 1).is_err());
    }
    let mut head = [1.0; 64];
    for scaling in [RopeScaling::Linear { factor: 1e-200 }, RopeScaling::Linear { factor: 1e300 }] {
        let table = RopeTable::new(RopeConfig::new(64, 1e4).with_scaling(scaling), 100).unwrap();
        table.apply(Isa::Scalar, 99, &mut head).unwrap();
        assert!(head.iter().all(|x| x.is_finite()));
    }
}

/// Any scaling, and the oracle's words for it.
fn any_scaling() -> impl Strategy<Value = (RopeScaling, Scaling, f64)> {
    let linear = (0.1f64..64.0)
        .prop_map(|factor| (RopeScaling::Linear { factor }, Scaling::linear(factor), 1.0));
    let llama3 = (1.0f64..64.0, 0.5f64..3.0, 0.5f64..8.0, 64usize..20_000).prop_map(
        |(factor, low, more, context)| {
            let high = low + more;
            let rule = Llama3::new(factor, context).with_freq_factors(low, high);
            let context = context as f64;
            (RopeScaling::Llama3(rule), Scaling::Llama3 { factor, low, high, context }, 1.0)
        },
    );
    let ends = (0.5f64..4.0, 1.0f64..60.0).prop_map(|(slow, more)| (slow + more, slow));
    let rest = (prop_oneof![Just(1.0), Just(0.0), 0.0f64..1.0], 0.5f64..2.0, 0.0f64..1.5);
    let yarn = (0.5f64..64.0, 64usize..40_000, ends, rest).prop_map(
        |(factor, context, ends, (ext, model, log_multiplier))| {
            let yarn = Yarn::new(factor, context)
                .with_betas(ends.0, ends.1)
                .with_ext_factor(ext)
                .with_log_multiplier(log_multiplier);
            let model_factors = (model, log_multiplier);
            let ggml = Scaling::llama_cpp_yarn(factor, context as f64, ends, ext, model_factors);
            (RopeScaling::Yarn(yarn), ggml, model)
        },
    );
    prop_oneof![linear, llama3, yarn]
}

/// Frequency factors to take some from: the oracle borrows them for ever.
static FACTORS: LazyLock<Vec<f32>> = LazyLock::new(|| {
    let mut rng = Rng::new(1);
    (0..1024).map(|_| 1.0 + rng.normal().abs()).collect()
});

proptest! {
    #[test]
    fn scalings_agree_with_the_oracle(
        (scaling, theirs, attn_factor) in any_scaling(),
        seed: u64,
        width in prop_oneof![Just(64usize), Just(128), Just(96), Just(6)],
        base in prop_oneof![Just(1e4), Just(5e5), Just(1e6)],
        position in prop_oneof![0usize..3, 0usize..3000],
        interleaved: bool,
        factors: bool,
    ) {
        let pairs = if interleaved { Pairing::Interleaved } else { Pairing::SplitHalf };
        let mut config = RopeConfig::new(width, base)
            .with_pairing(pairs)
            .with_scaling(scaling)
            .with_attn_factor(attn_factor);
        let mut rope = Rope::new(pairing(&config), width, base).with_scaling(theirs);
        let mut rng = Rng::new(seed);
        if factors {
            rope.factors = &FACTORS[rng.below(FACTORS.len() - width / 2)..][..width / 2];
            config = config.with_frequency_factors(rope.factors);
        }
        let head = Values::Normal.row(&mut rng, width);
        let table_row = rotated(config, position, &head);
        prop_assert_eq!(check_within(&table_row, &rope, position, &head), Ok(()));
    }
}
