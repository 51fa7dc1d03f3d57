//! The bounds hold for plain `f32` code in the contract's order, and are too tight for the usual faults.

use ck_testing::bounds::{self, AttentionErrors};
use ck_testing::compare::{Failures, assert_within, check_within};
use ck_testing::generate::{Quants, Rng, Scales, Values, random_row, sizes};
use ck_testing::oracle::{
    Attention, Block, CacheRounding, Format, Pairing, Rope, Sum, block_dot, decode_row, narrow,
    rmsnorm, row_dot, softmax, widen,
};

/// A row in `f32`, block after block.
fn row_in_f32(weights: &[Block], activations: &[Block]) -> f32 {
    weights.iter().zip(activations).fold(0.0, |acc, (w, a)| {
        (w.scale.to_f32() * a.scale.to_f32()).mul_add(block_dot(w, a) as f32, acc)
    })
}

#[test]
fn rows_are_within_the_bound_and_exact_where_promised() {
    let mut rng = Rng::new(1);
    let mut failures = Failures::default();
    let mut exact_cases = 0;
    for format in Format::ALL {
        for blocks in sizes::BLOCKS {
            for scales in Scales::ALL {
                for quants in Quants::ALL {
                    let mut row = |format| random_row(format, &mut rng, blocks, scales, quants);
                    let weights = decode_row(format, &row(format));
                    let activations = decode_row(Format::Q8_0, &row(Format::Q8_0));
                    let got = row_in_f32(&weights, &activations);
                    let sum = row_dot(&weights, &activations);
                    let exact = scales != Scales::Weights
                        && scales != Scales::AnyFinite
                        && sum.is_exact_in_f32(0.25);
                    exact_cases += usize::from(exact);
                    let bound = if exact { 0.0 } else { bounds::sequential_sum(&sum) };
                    let result = check_within(&[got], &[sum.value], &[bound]);
                    failures.add(format_args!("{format} {blocks} {scales:?} {quants:?}"), result);
                }
            }
        }
    }
    failures.assert_none();
    assert!(exact_cases > 100, "{exact_cases} cases were exact");
}

#[test]
fn a_row_without_its_last_block_is_outside_the_bound() {
    let mut rng = Rng::new(2);
    for format in Format::ALL {
        for blocks in sizes::BLOCKS.into_iter().filter(|&blocks| blocks > 0) {
            let mut row = |f| random_row(f, &mut rng, blocks, Scales::Weights, Quants::Any);
            let weights = decode_row(format, &row(format));
            let activations = decode_row(Format::Q8_0, &row(Format::Q8_0));
            let got = row_in_f32(&weights[1..], &activations[1..]);
            let sum = row_dot(&weights, &activations);
            let result = check_within(&[got], &[sum.value], &[bounds::sequential_sum(&sum)]);
            assert!(result.is_err(), "{format} {blocks}");
        }
    }
}

#[test]
fn an_empty_sum_must_be_zero() {
    assert_eq!(bounds::sequential_sum(&Sum::default()), 0.0);
    assert_eq!(bounds::sequential_sum(&Sum::of([0.0])), 2f64.powi(-150));
}

/// RMSNorm in the contract's `f32` order; `divisor` is the row's length, unless a fault is planted.
fn rmsnorm_in_f32(input: &[f32], gamma: &[f32], eps: f32, divisor: usize) -> Vec<f32> {
    let squares: f64 = input.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    let mean = (squares / divisor as f64) as f32;
    let scale = 1.0 / (mean + eps).sqrt();
    input.iter().zip(gamma).map(|(x, gamma)| (x * scale) * gamma).collect()
}

#[test]
fn rmsnorm_is_within_the_bound_and_faults_are_not() {
    let mut rng = Rng::new(3);
    for values in Values::QUANTIZABLE {
        for n in [1, 2, 31, 32, 33, 576, 896, 4096] {
            for eps in [0.0, 1e-6, 1e-5] {
                let input = values.row(&mut rng, n);
                let gamma = Values::Normal.row(&mut rng, n);
                let context = format!("{values:?} {n} {eps}");
                let (wide, wide_gamma) = (widen(&input), widen(&gamma));
                let Ok(exact) = rmsnorm(&wide, &wide_gamma, eps) else {
                    assert_eq!(eps, 0.0, "{context}");
                    continue;
                };
                let limits = bounds::rmsnorm(&exact, &wide_gamma, eps);
                let got = rmsnorm_in_f32(&input, &gamma, eps, n);
                assert_within(&context, &got, &exact.values, &limits);
                if values == Values::Normal && n > 1 {
                    let wrong_width = rmsnorm_in_f32(&input, &gamma, eps, n + 1);
                    assert!(check_within(&wrong_width, &exact.values, &limits).is_err());
                }
                if values == Values::Normal && eps > 0.0 {
                    let outside = rmsnorm_in_f32(&input, &gamma, 0.0, n);
                    assert!(check_within(&outside, &exact.values, &limits).is_err(), "{context}");
                }
            }
        }
    }
}

#[test]
fn rmsnorm_of_rows_whose_mean_square_is_subnormal_is_within_the_bound() {
    let mut rng = Rng::new(9);
    for magnitude in [1e-21, 4e-22, 6e-23] {
        for _ in 0..50 {
            let input: Vec<f32> = (0..33).map(|_| magnitude * rng.normal()).collect();
            let (wide, gamma) = (widen(&input), [1.0; 33]);
            let exact = rmsnorm(&wide, &gamma, 0.0).expect("a mean that f32 can hold");
            assert!((exact.mean_square as f32).is_subnormal(), "{magnitude:e}");
            let got = rmsnorm_in_f32(&input, &[1.0; 33], 0.0, 33);
            let limits = bounds::rmsnorm(&exact, &gamma, 0.0);
            assert_within(&format!("{magnitude:e}"), &got, &exact.values, &limits);
        }
    }
}

#[test]
fn rmsnorm_lets_errors_of_its_input_through() {
    let mut rng = Rng::new(10);
    for (n, eps, error) in [(1, 1e-6, 1e-3), (32, 0.0, 1e-3), (64, 1e-5, 1e-6), (128, 1.0, 1e-2)] {
        let input = Values::Normal.row(&mut rng, n);
        let gamma = Values::Normal.row(&mut rng, n);
        let (wide, wide_gamma) = (widen(&input), widen(&gamma));
        let exact = rmsnorm(&wide, &wide_gamma, eps).expect("finite");
        let errors = vec![f64::from(error); n];
        let limits = bounds::rmsnorm_of_errors(&exact, &wide, &errors, &wide_gamma, eps);
        for all_one_way in [false, true] {
            let mut moved = |x: &f32| {
                let sign = if all_one_way { x.signum() } else { rng.sign() };
                x + 0.99 * error * sign
            };
            let moved: Vec<f32> = input.iter().map(&mut moved).collect();
            let got = rmsnorm_in_f32(&moved, &gamma, eps, n);
            assert_within(&format!("{n}, {error}"), &got, &exact.values, &limits);
        }
        // Not much more than the error of one element and that of the whole length.
        let root = (exact.mean_square + f64::from(eps)).sqrt();
        for ((limit, gamma), x) in limits.iter().zip(&wide_gamma).zip(&wide) {
            let most = gamma.abs() * f64::from(error) / root * (1.0 + x.abs() / root);
            assert!(*limit < 1.1 * most + 1e-5 * (1.0 + x.abs()), "{n}: {limit} {most}");
        }
    }
    let exact = rmsnorm(&[1.0, -1.0], &[1.0; 2], 0.0).expect("finite");
    let limits = bounds::rmsnorm_of_errors(&exact, &[1.0, -1.0], &[1.0; 2], &[1.0; 2], 0.0);
    assert!(limits.iter().all(|limit| limit.is_infinite()), "nothing is known then");
}

fn rope_in_f32(rope: &Rope, position: usize, head: &[f32]) -> Vec<f32> {
    let mut rotated = head.to_vec();
    for pair in 0..rope.width / 2 {
        let (first, second) = rope.elements(pair);
        let angle = rope.angle(position, pair);
        let (sin, cos) = (angle.sin() as f32, angle.cos() as f32);
        let (a, b) = (head[first], head[second]);
        rotated[first] = a * cos - b * sin;
        rotated[second] = a * sin + b * cos;
    }
    rotated
}

#[test]
fn rope_is_within_the_bound_and_faults_are_not() {
    let mut rng = Rng::new(4);
    for pairing in Pairing::ALL {
        for (head_dim, width, base) in [(64, 64, 1e4), (80, 32, 1e6), (128, 128, 5e5)] {
            let rope = Rope::new(pairing, width, base);
            for position in [0, 1, 2, 63, 840, 4095, 131_071] {
                for values in [Values::Normal, Values::HugeActivations, Values::Subnormal] {
                    let head = values.row(&mut rng, head_dim);
                    let wide = widen(&head);
                    let mut exact = wide.clone();
                    rope.rotate_head(position, &mut exact);
                    let limits = bounds::rope(&rope, position, &wide, &vec![0.0; head_dim]);
                    let context = format!("{rope:?} at {position}, {values:?}");
                    assert_within(&context, &rope_in_f32(&rope, position, &head), &exact, &limits);
                    assert_eq!(limits[width..], vec![0.0; head_dim - width], "{context}");
                    let late = rope_in_f32(&rope, position + 1, &head);
                    assert!(check_within(&late, &exact, &limits).is_err(), "{context}");
                }
            }
        }
    }
}

#[test]
fn rope_lets_errors_of_its_input_through() {
    let rope = Rope::new(Pairing::SplitHalf, 64, 1e4);
    let mut rng = Rng::new(5);
    let head = Values::Normal.row(&mut rng, 64);
    let error = 1e-3;
    let moved: Vec<f32> = head.iter().map(|x| x + 0.99e-3 * rng.sign()).collect();
    let mut exact = widen(&head);
    let limits = bounds::rope(&rope, 77, &exact, &[error; 64]);
    rope.rotate_head(77, &mut exact);
    assert_within("moved", &rope_in_f32(&rope, 77, &moved), &exact, &limits);
    assert!(limits.iter().all(|&limit| limit < 1.42 * error), "{limits:?}");
}

/// One head's attention in `f32` with an online softmax over tiles of 16, without position `left_out`.
fn attention_in_f32(
    attention: &Attention,
    q: &[f32],
    keys: &[f32],
    values: &[f32],
    left_out: Option<usize>,
) -> Vec<f32> {
    let (dim, scale) = (attention.head_dim, attention.scale as f32);
    let exp = |x: f32| f64::from(x).exp() as f32;
    let (mut max, mut sum, mut acc) = (f32::NEG_INFINITY, 0.0f32, vec![0.0f32; dim]);
    let positions: Vec<usize> = (0..keys.len() / dim).filter(|&p| Some(p) != left_out).collect();
    for tile in positions.chunks(16) {
        let scores: Vec<f32> = tile
            .iter()
            .map(|p| {
                let key = &keys[p * dim..][..dim];
                let dot = q.iter().zip(key).fold(0.0f32, |acc, (q, k)| q.mul_add(*k, acc)) * scale;
                attention.soft_cap.map_or(dot, |cap| {
                    let cap = cap as f32;
                    cap * f64::from(dot / cap).tanh() as f32
                })
            })
            .collect();
        let new_max = scores.iter().copied().fold(max, f32::max);
        let rescale = if max == new_max { 1.0 } else { exp(max - new_max) };
        max = new_max;
        sum *= rescale;
        acc.iter_mut().for_each(|acc| *acc *= rescale);
        for (p, score) in tile.iter().zip(scores) {
            let weight = exp(score - max);
            sum += weight;
            for (acc, v) in acc.iter_mut().zip(&values[p * dim..][..dim]) {
                *acc = weight.mul_add(*v, *acc);
            }
        }
    }
    acc.iter().map(|acc| acc / sum).collect()
}

fn allowed(context: usize, cache: CacheRounding) -> AttentionErrors {
    let (exp, tanh) = (bounds::U, bounds::U);
    AttentionErrors { exp, tanh, additions: context, rescales: context.div_ceil(16), cache }
}

#[test]
fn attention_is_within_the_bound_and_a_lost_position_is_not() {
    let mut rng = Rng::new(6);
    for head_dim in [2, 64, 96, 128] {
        for context in sizes::CONTEXTS {
            for (size, soft_cap) in [(1.0, None), (3.0, Some(5.0)), (12.0, None)] {
                let mut attention = Attention::new(1, 1, head_dim).expect("head counts");
                attention.soft_cap = soft_cap;
                let mut row = |n| -> Vec<f32> { (0..n).map(|_| rng.normal()).collect() };
                let q: Vec<f32> = row(head_dim).iter().map(|q| q * size).collect();
                let (keys, values) = (row(context * head_dim), row(context * head_dim));
                let (wide_q, wide_keys, wide_values) = (widen(&q), widen(&keys), widen(&values));
                let exact = attention.attend(&wide_q, &wide_keys, &wide_values);
                let errors = allowed(context, CacheRounding::None);
                let limits =
                    bounds::attention(&attention, &errors, &wide_q, &wide_keys, &wide_values);
                let name = format!("{head_dim} {context} {size} {soft_cap:?}");
                let got = attention_in_f32(&attention, &q, &keys, &values, None);
                assert_within(&name, &got, &exact, &limits);
                // Losing the position of the median weight must show. (One with no weight cannot.)
                let weights = softmax(&attention.scores(0, &wide_q, &wide_keys));
                let mut order: Vec<usize> = (0..context).collect();
                order.sort_by(|&a, &b| weights[a].total_cmp(&weights[b]));
                if context > 1 && size < 12.0 {
                    let lost = Some(order[context / 2]);
                    let got = attention_in_f32(&attention, &q, &keys, &values, lost);
                    assert!(
                        check_within(&got, &exact, &limits).is_err(),
                        "{name} without {lost:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn attention_over_a_rounded_cache_is_within_the_wider_bound() {
    let mut rng = Rng::new(7);
    for cache in [CacheRounding::F16, CacheRounding::Q8_0] {
        for context in [1, 17, 257] {
            let attention = Attention::new(1, 1, 64).expect("head counts");
            let mut row = |n| -> Vec<f32> { (0..n).map(|_| rng.normal()).collect() };
            let (q, keys, values) = (row(64), row(64 * context), row(64 * context));
            let (wide_q, wide_keys, wide_values) = (widen(&q), widen(&keys), widen(&values));
            let exact = attention.attend(&wide_q, &wide_keys, &wide_values);
            let errors = allowed(context, cache);
            let limits = bounds::attention(&attention, &errors, &wide_q, &wide_keys, &wide_values);
            let stored_keys = narrow(&cache.round(&wide_keys).expect("in range"));
            let stored_values = narrow(&cache.round(&wide_values).expect("in range"));
            let got = attention_in_f32(&attention, &q, &stored_keys, &stored_values, None);
            assert_within(&format!("{cache:?} {context}"), &got, &exact, &limits);
            let errors = allowed(context, CacheRounding::None);
            let limits = bounds::attention(&attention, &errors, &wide_q, &wide_keys, &wide_values);
            assert!(check_within(&got, &exact, &limits).is_err(), "{cache:?} {context}");
        }
    }
}

#[test]
fn cache_rounding_is_within_its_bound_and_comes_near_it() {
    let mut rng = Rng::new(8);
    for cache in [CacheRounding::F16, CacheRounding::Q8_0] {
        for values in [Values::Normal, Values::ManyMagnitudes, Values::Subnormal, Values::Zeros] {
            let row: Vec<f64> =
                values.row(&mut rng, 6400).iter().map(|&x| f64::from(x).min(6e4)).collect();
            let row: Vec<f64> = row.iter().map(|x| x.max(-6e4)).collect();
            let stored = cache.round(&row).expect("in range");
            let limits = bounds::cache_rounding(cache, &row);
            assert_within(&format!("{cache:?} {values:?}"), &narrow(&stored), &row, &limits);
            if values == Values::Normal {
                let nearness =
                    |((x, stored), limit): ((&f64, &f64), &f64)| (x - stored).abs() / limit;
                let nearest =
                    row.iter().zip(&stored).zip(&limits).map(nearness).fold(0.0, f64::max);
                assert!(nearest > 0.8, "{cache:?}: at most {nearest} of the bound");
            }
        }
    }
}
