//! Samples and what is reported of them.

use serde::{Deserialize, Serialize};

/// Median and spread of a set of samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The sample in the middle.
    pub median: f64,
    /// The smallest sample.
    pub min: f64,
    /// The largest sample.
    pub max: f64,
    /// The sample that a tenth of the others lie below.
    pub p10: f64,
    /// The sample that a tenth of the others lie above.
    pub p90: f64,
    /// How many samples there were.
    pub samples: usize,
}

impl Summary {
    /// Sums up samples; `None` if there are none.
    #[must_use]
    pub fn of(mut samples: Vec<f64>) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        let last = samples.len().checked_sub(1)?;
        let at = |share: f64| samples[(last as f64 * share).round() as usize];
        let (min, max) = (samples[0], samples[last]);
        Some(Self { median: at(0.5), min, max, p10: at(0.1), p90: at(0.9), samples: samples.len() })
    }

    /// The ratios of two sets of samples taken in turns, pair by pair: `of[i] / to[i]`.
    #[must_use]
    pub fn of_ratios(of: &[f64], to: &[f64]) -> Option<Self> {
        Self::of(of.iter().zip(to).map(|(of, to)| of / to).collect())
    }
}

/// The sample in the middle; NaN without samples.
#[must_use]
pub fn median(samples: Vec<f64>) -> f64 {
    Summary::of(samples).map_or(f64::NAN, |summary| summary.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_spread_of_a_known_set() {
        let summary = Summary::of((0..=100).rev().map(f64::from).collect()).unwrap();
        assert_eq!((summary.min, summary.p10, summary.median), (0.0, 10.0, 50.0));
        assert_eq!((summary.p90, summary.max, summary.samples), (90.0, 100.0, 101));
        assert_eq!(Summary::of(vec![3.0]).unwrap().p90, 3.0);
        assert!(Summary::of(Vec::new()).is_none());
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn ratios_are_taken_pair_by_pair() {
        // Both contenders slow down threefold in the middle; their ratio does not move.
        let ratios = Summary::of_ratios(&[2.0, 6.0, 2.0], &[1.0, 3.0, 1.0]).unwrap();
        assert_eq!((ratios.min, ratios.median, ratios.max), (2.0, 2.0, 2.0));
    }
}
