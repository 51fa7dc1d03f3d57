//! Timing in turns: every contender once, then every contender again. What slows the machine down for a
//! second slows all of them down.

use crate::contender::Contender;
use std::time::{Duration, Instant};

/// The least time of one sample.
const SAMPLE: Duration = Duration::from_millis(4);

/// Times the contenders in turns, and returns the samples of each: nanoseconds per call. A sample is a whole
/// number of passes over the `copies` of the data.
pub fn interleaved(
    contenders: &mut [Box<dyn Contender + '_>],
    copies: usize,
    repeats: usize,
) -> Vec<Vec<f64>> {
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
    samples
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
