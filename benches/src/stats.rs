//! Samples and what is reported of them.

use serde::Serialize;

/// Median and spread of a set of samples.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Summary {
    /// The sample in the middle.
    pub median: f64,
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
        Some(Self { median: at(0.5), p10: at(0.1), p90: at(0.9), samples: samples.len() })
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
        assert_eq!((summary.p10, summary.median, summary.p90), (10.0, 50.0, 90.0));
        assert_eq!(Summary::of(vec![3.0]).unwrap().p90, 3.0);
        assert!(Summary::of(Vec::new()).is_none());
        assert!(median(Vec::new()).is_nan());
    }
}
