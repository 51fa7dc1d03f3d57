//! Every shape, length and option against the f64 oracle.

use super::{Sample, attention, windows, with_window};
use crate::exp::{EXP_ULPS, TANH_ULPS};
use crate::{CHUNK, CacheElement, Q8_0};
use ck_testing::bounds::{self, AttentionErrors};
use ck_testing::compare::{Failures, check_within};
use ck_testing::generate::{Values, sizes};
use ck_testing::oracle::{self, BLOCK, CacheRounding};
use ck_testing::run::all_or_few;
use half::f16;
use proptest::prelude::*;

/// Context lengths around panels and chunks.
fn lengths() -> &'static [usize] {
    const ALL: [usize; 9] = [1, 2, 15, 16, 17, CHUNK - 1, CHUNK, CHUNK + 1, 1000];
    all_or_few(&ALL, &[1, 17, CHUNK + 1])
}

/// What docs/numerics.md states. An ulp is at most two units of roundoff of the value. A weight passes 16 additions to its partial
/// sum and 4 halvings; a weighted value at most 256; merging adds one each, and rescales, per chunk.
fn allowed(cache: CacheRounding, positions: usize) -> AttentionErrors {
    let u = f64::from(f32::EPSILON) / 2.0;
    let merges = positions.div_ceil(CHUNK) - 1;
    AttentionErrors {
        exp: 2.0 * EXP_ULPS * u,
        tanh: TANH_ULPS * u,
        additions: CHUNK.min(positions).max(20) + merges,
        rescales: merges,
        cache,
    }
}

/// Compares `got` with the oracle on the history of `sample`.
fn check(sample: &Sample, cache: CacheRounding, got: &[f32]) -> Result<(), String> {
    let attention = oracle::Attention {
        n_heads: sample.attention.n_heads(),
        n_kv_heads: sample.attention.n_kv_heads(),
        head_dim: sample.attention.head_dim(),
        scale: f64::from(sample.attention.scale()),
        soft_cap: sample.attention.soft_cap().map(f64::from),
        window: sample.attention.window(),
        sinks: sample.attention.sinks(),
    };
    let widen = |row: &[f32]| row.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    let round = |row: &[f32]| cache.round(&widen(row)).unwrap();
    let (q, keys, values) = (widen(&sample.q), round(&sample.keys), round(&sample.values));
    let allowed = allowed(CacheRounding::None, sample.positions());
    let bounds = bounds::attention(&attention, &allowed, &q, &keys, &values);
    check_within(got, &attention.attend(&q, &keys, &values), &bounds)
}

fn decode<E: CacheElement>(sample: &Sample) -> Vec<f32> {
    sample.decode(&sample.stored::<E>()).unwrap()
}

/// Checks attention over a cache of every element type that can hold the heads.
fn check_all(sample: &Sample) -> Result<(), String> {
    let name = |name| move |error| format!("{name}: {error}");
    check(sample, CacheRounding::None, &decode::<f32>(sample)).map_err(name("f32"))?;
    check(sample, CacheRounding::F16, &decode::<f16>(sample)).map_err(name("f16"))?;
    if sample.attention.head_dim().is_multiple_of(BLOCK) {
        check(sample, CacheRounding::Q8_0, &decode::<Q8_0>(sample)).map_err(name("q8_0"))?;
    }
    Ok(())
}

#[test]
fn every_head_dimension_and_length() {
    let mut failures = Failures::default();
    for head_dim in sizes::HEAD_DIMS.into_iter().chain(sizes::ODD_HEAD_DIMS) {
        for &positions in lengths() {
            let sample = Sample::new(attention(3, 1, head_dim), positions, Values::Normal, 1);
            failures.add(format_args!("{head_dim} at {positions}"), check_all(&sample));
        }
    }
    failures.assert_none();
}

// Two query heads on one KV head of a single block, so that the oracle's rows fit any machine. Scores are small, large and
// nearly equal.
#[test]
fn long_contexts() {
    let mut failures = Failures::default();
    for (positions, scale) in
        [(4096, 0.2), (4096, 4.0), (4096, 1e-6), (all_or_few(131_072, 8192), 0.2)]
    {
        let attention = attention(2, 1, BLOCK).with_scale(scale).unwrap();
        let sample = Sample::new(attention, positions, Values::Normal, 7);
        failures.add(format_args!("scale {scale} at {positions}"), check_all(&sample));
    }
    failures.assert_none();
}

// Case B28; fault 1 of the original: the KV head computed from a part of the heads.
#[test]
fn every_grouping_of_heads() {
    let mut failures = Failures::default();
    for (heads, kv_heads) in sizes::HEAD_COUNTS.into_iter().chain([(20, 1), (36, 2)]) {
        for positions in [1, 37, CHUNK + 5] {
            let sample = Sample::new(attention(heads, kv_heads, 32), positions, Values::Normal, 2);
            failures.add(format_args!("{heads} on {kv_heads}"), check_all(&sample));
        }
    }
    failures.assert_none();
}

#[test]
fn every_window_and_sinks() {
    let mut failures = Failures::default();
    for window in windows() {
        for &positions in lengths() {
            let attention = with_window(attention(2, 1, 32), window);
            let sample = Sample::new(attention, positions, Values::Normal, 3);
            failures.add(format_args!("{window:?} at {positions}"), check_all(&sample));
        }
    }
    failures.assert_none();
}

#[test]
fn scales_and_soft_caps() {
    let mut failures = Failures::default();
    for scale in [1.0, -0.5, 0.0, 1e-3, 8.0] {
        for soft_cap in [None, Some(50.0), Some(1.0), Some(1e-3), Some(1e3)] {
            let mut attention = attention(2, 2, 64).with_scale(scale).unwrap();
            if let Some(soft_cap) = soft_cap {
                attention = attention.with_soft_cap(soft_cap).unwrap();
            }
            let sample = Sample::new(attention, 300, Values::Normal, 4);
            failures.add(format_args!("scale {scale}, cap {soft_cap:?}"), check_all(&sample));
        }
    }
    failures.assert_none();
}

#[test]
fn every_kind_of_value() {
    let mut failures = Failures::default();
    for kind in [
        Values::Uniform,
        Values::Zeros,
        Values::AlternatingSigns,
        Values::Subnormal,
        Values::HugeActivations,
    ] {
        let sample = Sample::new(attention(2, 1, 64), 2 * CHUNK + 9, kind, 5);
        failures.add(format_args!("{kind:?}"), check_all(&sample));
    }
    failures.assert_none();
}

// Style: a tolerance wide enough to hide a dropped tail is no test.
#[test]
fn the_bounds_see_a_dropped_position_and_a_dropped_dimension() {
    faults_are_seen::<f32>(CacheRounding::None);
    faults_are_seen::<f16>(CacheRounding::F16);
    faults_are_seen::<Q8_0>(CacheRounding::Q8_0);
}

fn faults_are_seen<E: CacheElement>(rounding: CacheRounding) {
    for positions in [2, 17, CHUNK + 1, 1000] {
        let sample = Sample::new(attention(2, 1, 64), positions, Values::Normal, 6);
        assert_eq!(check(&sample, rounding, &decode::<E>(&sample)), Ok(()));
        let clone = |sample: &Sample| Sample {
            attention: sample.attention.clone(),
            keys: sample.keys.clone(),
            values: sample.values.clone(),
            q: sample.q.clone(),
        };
        let faulty = |change: &dyn Fn(&mut Sample)| {
            let mut changed = clone(&sample);
            change(&mut changed);
            check(&sample, rounding, &decode::<E>(&changed)).is_err()
        };
        // The oldest and the newest position, the last dimension of one key and of one value.
        assert!(faulty(&|s| {
            s.keys.drain(..64);
            s.values.drain(..64);
        }));
        assert!(faulty(&|s| {
            s.keys.truncate(64 * (positions - 1));
            s.values.truncate(64 * (positions - 1));
        }));
        assert!(faulty(&|s| s.keys[63] = 0.0), "{positions}");
        assert!(faulty(&|s| s.values[63] = 0.0), "{positions}");
        assert!(faulty(&|s| s.q[63] = 0.0), "{positions}");
        assert!(faulty(&|s| s.attention = s.attention.clone().with_scale(0.125_1).unwrap()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(all_or_few(64, 8)))]

    #[test]
    fn agrees_with_the_oracle(
        kv_heads in 1usize..4,
        group in 1usize..10,
        half_dim in prop_oneof![1usize..40, Just(16), Just(32), Just(48)],
        positions in 1usize..600,
        seed: u64,
        window in prop::option::of(1usize..600),
        sinks in 0usize..300,
        soft_cap in prop::option::of(0.5f32..60.0),
    ) {
        let attention = attention(kv_heads * group, kv_heads, 2 * half_dim);
        let mut attention = with_window(attention, (window, sinks));
        if let Some(soft_cap) = soft_cap {
            attention = attention.with_soft_cap(soft_cap).unwrap();
        }
        let sample = Sample::new(attention, positions, Values::Normal, seed);
        prop_assert_eq!(check_all(&sample), Ok(()));
    }
}
