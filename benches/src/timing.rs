//! Timing in turns: every contender once, then every contender again. What slows the machine down for a
//! second slows all of them down.

use crate::contender::Contender;
use serde::Serialize;
use std::time::{Duration, Instant};

/// The least time of one sample.
const SAMPLE: Duration = Duration::from_millis(4);

/// What the samples of one contender say.
#[derive(Clone, Debug, Serialize)]
pub struct Timing {
    /// The contender.
    pub name: String,
    /// Nanoseconds of one call: the median over the samples.
    pub median_ns: f64,
    /// The best sample.
    pub min_ns: f64,
    /// The 10th and the 90th percentile.
    pub spread_ns: [f64; 2],
}

/// Times the contenders in turns. A sample is a whole number of passes over the `copies` of the data.
pub fn interleaved(
    contenders: &mut [Box<dyn Contender + '_>],
    copies: usize,
    repeats: usize,
) -> Vec<Timing> {
    let passes: Vec<usize> = contenders.iter_mut().map(|c| passes(c.as_mut(), copies)).collect();
    let mut samples = vec![Vec::with_capacity(repeats); contenders.len()];
    for _ in 0..repeats {
        for (index, contender) in contenders.iter_mut().enumerate() {
            let calls = passes[index] * copies;
            // One pass that is not timed brings a hot case back into the cache.
            let warm = if copies == 1 { 2 } else { 0 };
            time(contender.as_mut(), warm);
            samples[index].push(time(contender.as_mut(), calls) / calls as f64);
        }
    }
    let timings = contenders.iter().zip(samples);
    timings.map(|(contender, samples)| summary(contender.name(), samples)).collect()
}

/// Passes over the copies that take at least [`SAMPLE`].
fn passes(contender: &mut dyn Contender, copies: usize) -> usize {
    let mut passes = 1;
    loop {
        let ns = time(contender, passes * copies);
        if ns >= SAMPLE.as_nanos() as f64 {
            return passes;
        }
        passes *= 2;
    }
}

/// Nanoseconds of `calls` calls.
fn time(contender: &mut dyn Contender, calls: usize) -> f64 {
    let start = Instant::now();
    for call in 0..calls {
        contender.run(call);
    }
    start.elapsed().as_nanos() as f64
}

fn summary(name: String, mut samples: Vec<f64>) -> Timing {
    samples.sort_by(f64::total_cmp);
    let at = |part: f64| samples[((samples.len() - 1) as f64 * part).round() as usize];
    Timing { name, median_ns: at(0.5), min_ns: samples[0], spread_ns: [at(0.1), at(0.9)] }
}
