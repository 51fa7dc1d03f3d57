//! How far an `f32` result that keeps the contract's order of operations may be from the oracle.
//!
//! Every bound is derived, not measured. The model is that of N. J. Higham, "Accuracy and Stability of
//! Numerical Algorithms", chapters 2 and 3: an `f32` operation gives `exact * (1 + d)` with `|d| <= u = 2^-24`,
//! or, where the result is subnormal, `exact + e` with `|e| <= 2^-150`. A product of k factors
//! `(1 + d)` or their inverses is `1 + t` with `|t| <= gamma(k) = k u / (1 - k u)`.
//!
//! The oracle's own `f64` errors are 2^29 times smaller per operation; they are covered where a formula says
//! so, and otherwise by the step from `k u` to `gamma(k)`.

use crate::oracle::{Attention, BLOCK, CacheRounding, RmsNorm, Rope, Sum};

/// The unit roundoff of `f32`.
pub const U: f64 = 1.0 / 16_777_216.0;

/// Half the spacing of subnormal `f32`, 2^-150: what one operation may lose there.
pub const UNDERFLOW: f64 = f64::from_bits((1023 - 150) << 52);

/// Half the spacing of subnormal `f16`, 2^-25.
const F16_UNDERFLOW: f64 = U / 2.0;

/// The unit roundoff of `f16`, 2^-11.
const F16_U: f64 = 1.0 / 2048.0;

/// `k u / (1 - k u)`: what k roundings may amount to, relatively.
///
/// # Panics
///
/// If `k u` is not below 1: there is no bound then.
#[must_use]
pub fn gamma(k: usize) -> f64 {
    let sum = k as f64 * U;
    assert!(sum < 1.0, "{k} roundings have no bound");
    sum / (1.0 - sum)
}

/// The bound of a sum in `f32` whose terms are added one after the other, beginning at 0.
///
/// The terms are exact when they are added: exact numbers, or products inside a fused multiply-add. Each
/// step rounds once, so a term passes n roundings at most and contributes `gamma(n) * |term|`
/// (Higham, section 4.2). A step may also underflow.
#[must_use]
pub fn sequential_sum(sum: &Sum) -> f64 {
    gamma(sum.terms) * sum.magnitude + sum.terms as f64 * UNDERFLOW
}

/// The bounds of an RMSNorm row.
///
/// The sum of squares is in `f64` and loses at most `(n + 8) 2^-53` of itself. Then `f32` rounds the mean, the sum
/// with epsilon, the root, the reciprocal and two products. The first two are inside the root, which halves them:
/// `gamma(5)` relatively in all. A subnormal mean is off by up to 2^-150, which changes the result by at most
/// `2^-150 / (mean + eps)`, relatively, as `1 / sqrt(1 - t) <= 1 + t` for t up to 1/2. The two products
/// may underflow, the first before it is multiplied by gamma.
///
/// # Panics
///
/// If the lengths differ.
#[must_use]
pub fn rmsnorm(exact: &RmsNorm, gamma_row: &[f64], eps: f32) -> Vec<f64> {
    assert_eq!(exact.values.len(), gamma_row.len(), "one gamma per element");
    let n = exact.values.len() as f64;
    let relative = gamma(5)
        + (n + 8.0) * f64::EPSILON / 2.0
        + UNDERFLOW / (exact.mean_square + f64::from(eps));
    let bound = |(y, gamma): (&f64, &f64)| y.abs() * relative + (gamma.abs() + 1.0) * UNDERFLOW;
    exact.values.iter().zip(gamma_row).map(bound).collect()
}

/// The bounds of an RMSNorm row whose input may be off by `input_error`, element by element.
///
/// With `R = sqrt(mean(x^2) + eps)`, which is the length of a vector of the elements over `sqrt(n)` and `sqrt(eps)`, an input that
/// is off moves R by at most `r = sqrt(mean(error^2))`. So `x / R` is off by at most `(error + |x| r / R) / (R - r)`.
/// What [`rmsnorm`] says of the roundings applies to the row that is off. Infinite where r is not below R.
///
/// # Panics
///
/// If the lengths differ.
#[must_use]
pub fn rmsnorm_of_errors(
    exact: &RmsNorm,
    input: &[f64],
    input_error: &[f64],
    gamma_row: &[f64],
    eps: f32,
) -> Vec<f64> {
    assert_eq!(input.len(), input_error.len(), "one error per element");
    let root = (exact.mean_square + f64::from(eps)).sqrt();
    let squares: f64 = input_error.iter().map(|error| error * error).sum();
    let off = (squares / input.len() as f64).sqrt();
    if off >= root {
        return vec![f64::INFINITY; input.len()];
    }
    let moved: Vec<f64> = input
        .iter()
        .zip(input_error)
        .zip(gamma_row)
        .map(|((x, error), gamma)| gamma.abs() * (error + x.abs() * off / root) / (root - off))
        .collect();
    let values = exact.values.iter().zip(&moved).map(|(y, moved)| y.abs() + moved).collect();
    let mean_square = (root - off).powi(2) - f64::from(eps);
    let rounded = rmsnorm(&RmsNorm { values, mean_square }, gamma_row, eps);
    moved.iter().zip(rounded).map(|(moved, rounded)| moved + rounded).collect()
}

/// The bounds of a rotated head, given the head before the rotation and how far each of its elements may be off.
///
/// A result is `a cos - b sin` (or `a sin + b cos`), cosine and sine times the magnitude: table entry, product and sum
/// round, `gamma(3)` of each term's magnitude, whether or not the multiplication is fused. The angle is computed in
/// `f64` by both sides; what [`Rope::angle_error`] says of it moves the result by that times `|a| + |b|`. Errors
/// of the input pass through the rotation. Elements beyond the rotary width keep their own error.
///
/// # Panics
///
/// If the lengths differ or the rotary width does not fit.
#[must_use]
pub fn rope(rope: &Rope, position: usize, head: &[f64], input_error: &[f64]) -> Vec<f64> {
    assert_eq!(head.len(), input_error.len(), "one error per element");
    let mut bounds = input_error.to_vec();
    for pair in 0..rope.width / 2 {
        let (first, second) = rope.elements(pair);
        let angle = rope.angle(position, pair);
        let magnitude = rope.magnitude();
        let (sin, cos) = (angle.sin().abs() * magnitude, angle.cos().abs() * magnitude);
        let angle_error = rope.angle_error(position, pair) * magnitude;
        let (a, b) = (head[first].abs(), head[second].abs());
        let (a_error, b_error) = (input_error[first], input_error[second]);
        let common = angle_error * (a + b) + 3.0 * UNDERFLOW;
        // The roundings apply to the perturbed input.
        let growth = 1.0 + gamma(3);
        let rounded = |x: f64, y: f64, x_error: f64, y_error: f64| {
            gamma(3) * (x + y) + growth * (x_error + y_error)
        };
        bounds[first] = common + rounded(a * cos, b * sin, a_error * cos, b_error * sin);
        bounds[second] = common + rounded(a * sin, b * cos, a_error * sin, b_error * cos);
    }
    bounds
}

/// How far rounding to the cache's type may move each element of a row.
///
/// `f16`: 2^-11 of the element, at least 2^-25. Q8_0: half a step, `amax / 254`, plus what rounding the scale
/// does to up to 127 steps, 2^-11 of `amax` (at least 127 times 2^-25), plus `f32` roundings of the quotient
/// that decides a step, `gamma(6)` of `amax`; and a block whose scale rounds to zero loses itself, which the terms above
/// cover.
///
/// # Panics
///
/// If the row of a Q8_0 cache is no whole number of blocks.
#[must_use]
pub fn cache_rounding(cache: CacheRounding, row: &[f64]) -> Vec<f64> {
    match cache {
        CacheRounding::None => vec![0.0; row.len()],
        CacheRounding::F16 => {
            row.iter().map(|x| (x.abs() * F16_U).max(F16_UNDERFLOW) + x.abs() * U).collect()
        }
        CacheRounding::Q8_0 => {
            assert_eq!(row.len() % BLOCK, 0, "{} elements of whole blocks", row.len());
            let block_bound = |block: &[f64]| {
                let amax = block.iter().fold(0.0f64, |amax, x| amax.max(x.abs()));
                let scale = (amax * F16_U).max(127.0 * F16_UNDERFLOW);
                [amax / 254.0 + scale + gamma(6) * amax; BLOCK]
            };
            row.chunks_exact(BLOCK).flat_map(block_bound).collect()
        }
    }
}

/// What an implementation of attention is allowed.
#[derive(Clone, Copy, Debug)]
pub struct AttentionErrors {
    /// The largest relative error of its `exp`, for arguments whose result is a normal `f32`.
    pub exp: f64,
    /// The largest absolute error of its `tanh`; only used with a soft cap.
    pub tanh: f64,
    /// The largest number of additions that a weight or a weighted value passes on its way into the result.
    pub additions: usize,
    /// The largest number of times that a partial result is rescaled to another maximum.
    pub rescales: usize,
    /// The rounding of keys and values that the implementation does and the oracle's history has not had.
    pub cache: CacheRounding,
}

/// The bounds of attention outputs, `n_heads * head_dim` of them.
///
/// A score is a sum of `head_dim` products, times the scale (whose own error is up to two roundings):
/// `gamma(head_dim + 3)` of the magnitudes. A soft cap adds three roundings and `cap` times the error of tanh;
/// its slope is at most 1, and the relative error of the argument does not grow through tanh. Rounded keys add
/// `|q| . |error of k|` times the scale.
///
/// A weight is `exp(score - max)`, perhaps rescaled. Whatever the maximum is, it is common to all
/// weights and cancels. In logarithms, the weight is off by the error of its score; by u for every unit of
/// `max - score`, as the argument of exp is rounded (over all rescalings these distances add up to
/// the same `max - score`); by the error of exp once and once per rescaling; and by one rounding per rescaling and
/// per addition. The quotient of the two perturbed sums, with weights p that add up to 1 and output o, is off by
/// `(A + |o| B) / (1 - B)`, where A is the sum of `p |v| (relative error)` and B that of
/// `p (relative error)`. Division rounds twice at most. A weight below 2^-126 may be flushed to 0 by exp,
/// once per rescaling.
///
/// Returns infinity where the weights themselves are not determined (B not below 1).
#[must_use]
pub fn attention(
    attention: &Attention,
    allowed: &AttentionErrors,
    q: &[f64],
    keys: &[f64],
    values: &[f64],
) -> Vec<f64> {
    let exact = attention.attend(q, keys, values);
    let attended = attention.attended(keys.len() / attention.kv_width());
    let mut bounds = vec![0.0; exact.len()];
    for head in 0..attention.n_heads {
        let range = head * attention.head_dim..(head + 1) * attention.head_dim;
        let scores = attention.scores(head, q, keys);
        let weights = crate::oracle::softmax(&scores);
        let errors = weight_errors(attention, allowed, head, q, keys, &scores);
        let spread: f64 = weights.iter().zip(&errors).map(|(p, error)| p * error).sum();
        let flushed = (allowed.rescales + 1) as f64 * f64::from(f32::MIN_POSITIVE);
        let mut value_part = vec![0.0; attention.head_dim];
        for ((p, error), &position) in weights.iter().zip(&errors).zip(&attended) {
            let row = attention.kv_row(values, head, position);
            let rounding = cache_rounding(allowed.cache, row);
            for ((part, v), moved) in value_part.iter_mut().zip(row).zip(rounding) {
                *part += (p * error + flushed) * (v.abs() + moved) + p * moved + UNDERFLOW;
            }
        }
        let spread = spread + flushed * attended.len() as f64;
        for ((bound, part), o) in
            bounds[range.clone()].iter_mut().zip(value_part).zip(&exact[range])
        {
            *bound = if spread < 1.0 {
                let quotient = (part + o.abs() * spread) / (1.0 - spread);
                quotient + gamma(2) * (o.abs() + quotient) + UNDERFLOW
            } else {
                f64::INFINITY
            };
        }
    }
    bounds
}

/// The relative error of each weight of a head, see [`attention`].
fn weight_errors(
    attention: &Attention,
    allowed: &AttentionErrors,
    head: usize,
    q: &[f64],
    keys: &[f64],
    scores: &[f64],
) -> Vec<f64> {
    let query = attention.q_head(q, head);
    let attended = attention.attended(keys.len() / attention.kv_width());
    let score_errors: Vec<f64> = scores
        .iter()
        .zip(attended)
        .map(|(score, position)| {
            let key = attention.kv_row(keys, head, position);
            let moved = cache_rounding(allowed.cache, key);
            let dot = Sum::of(query.iter().zip(key).map(|(q, k)| q * k));
            let key_part: f64 = query.iter().zip(&moved).map(|(q, moved)| (q * moved).abs()).sum();
            let rounded = gamma(attention.head_dim + 3) * (dot.magnitude + key_part);
            let capped = attention
                .soft_cap
                .map_or(0.0, |cap| gamma(3) * score.abs() + cap.abs() * allowed.tanh);
            attention.scale.abs() * (rounded + key_part)
                + capped
                + attention.head_dim as f64 * UNDERFLOW
        })
        .collect();
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let worst = score_errors.iter().copied().fold(0.0, f64::max);
    let fixed = (allowed.rescales + 1) as f64 * -(-allowed.exp).ln_1p()
        + (allowed.rescales + allowed.additions) as f64 * -(-U).ln_1p();
    scores
        .iter()
        .zip(score_errors)
        .map(|(score, error)| (error + U * (max - score + 2.0 * worst) + fixed).exp_m1())
        .collect()
}
