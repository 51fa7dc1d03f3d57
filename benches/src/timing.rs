//! Timing in turns: every contender once, then every contender again. What slows the machine down for a
//! second slows all of them down.

use crate::contender::{Contender, Entry};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How a case is sampled.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    /// Samples of each contender.
    pub repeats: usize,
    /// The least time of one sample.
    pub at_least: Duration,
    /// Copies of the data that the calls go through in turn.
    pub copies: usize,
}

/// One contender's turns.
struct Turns {
    calls: usize,
    next_copy: usize,
    samples: Vec<f64>,
}

/// Times the contenders in turns, and returns the samples of each: nanoseconds per call. Every contender
/// goes on with the copy after its last one. `None` if `interrupted` became true.
pub fn interleaved(
    entries: &mut [Entry<'_>],
    sampling: Sampling,
    interrupted: &AtomicBool,
) -> Option<Vec<Vec<f64>>> {
    let mut turns: Vec<Turns> = Vec::new();
    for entry in entries.iter_mut() {
        let (calls, next_copy) =
            calls_of_a_sample(entry.contender.as_mut(), sampling, interrupted)?;
        turns.push(Turns { calls, next_copy, samples: Vec::with_capacity(sampling.repeats) });
    }
    for _ in 0..sampling.repeats {
        for (entry, turns) in entries.iter_mut().zip(&mut turns) {
            if interrupted.load(Ordering::Relaxed) {
                return None;
            }
            let contender = entry.contender.as_mut();
            contender.start();
            // A few calls that do not count wake threads, and bring what is hot back into the cache.
            let warm = if sampling.copies == 1 { 3 } else { 1 };
            let copies = turns.next_copy..turns.next_copy + warm;
            time(contender, copies);
            let first = turns.next_copy + warm;
            let ns = time(contender, first..first + turns.calls);
            turns.next_copy = (first + turns.calls) % sampling.copies;
            turns.samples.push(ns / turns.calls as f64);
            contender.stop();
        }
    }
    Some(turns.into_iter().map(|turns| turns.samples).collect())
}

/// How many calls take the least time of a sample, and the copy after those that this took to find out.
fn calls_of_a_sample(
    contender: &mut dyn Contender,
    sampling: Sampling,
    interrupted: &AtomicBool,
) -> Option<(usize, usize)> {
    let (mut calls, mut copy) = (1, 0);
    contender.start();
    time(contender, 0..1);
    let found = loop {
        if interrupted.load(Ordering::Relaxed) {
            break None;
        }
        let ns = time(contender, copy..copy + calls);
        copy = (copy + calls) % sampling.copies;
        let wanted = sampling.at_least.as_nanos() as f64;
        if ns >= wanted {
            break Some((calls, copy));
        }
        // Straight to a fifth more than is missing, but not all at once on the word of a cold call.
        calls = ((calls as f64 * 1.2 * wanted / ns) as usize).clamp(calls + 1, 16 * calls);
    };
    contender.stop();
    found
}

/// Nanoseconds of one call for each of `copies`.
fn time(contender: &mut dyn Contender, copies: std::ops::Range<usize>) -> f64 {
    let start = Instant::now();
    for copy in copies {
        contender.run(copy);
    }
    start.elapsed().as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Agreement;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Writes down what is done with it.
    struct Diary(char, Rc<RefCell<String>>);

    impl Diary {
        fn write(&self, what: char) {
            self.1.borrow_mut().extend([self.0, what]);
        }
    }

    impl Contender for Diary {
        fn name(&self) -> String {
            self.0.to_string()
        }

        fn start(&mut self) {
            self.write('(');
        }

        fn stop(&mut self) {
            self.write(')');
        }

        fn run(&mut self, copy: usize) {
            self.write(char::from_digit((copy % 3) as u32, 10).unwrap());
        }

        fn answer(&self) -> Vec<f32> {
            Vec::new()
        }

        fn agreement(&self) -> Agreement {
            Agreement::None
        }
    }

    fn sample(interrupted: bool) -> (Option<Vec<Vec<f64>>>, String) {
        let diary = Rc::new(RefCell::new(String::new()));
        let mut entries: Vec<Entry<'_>> = ['a', 'b']
            .map(|name| Entry::new(Diary(name, Rc::clone(&diary)), &Rc::default()))
            .into();
        let sampling = Sampling { repeats: 2, at_least: Duration::ZERO, copies: 3 };
        let samples = interleaved(&mut entries, sampling, &AtomicBool::new(interrupted));
        drop(entries);
        (samples, Rc::try_unwrap(diary).unwrap().into_inner())
    }

    // Case B60.
    #[test]
    fn contenders_take_turns_and_go_on_where_they_were() {
        let (samples, diary) = sample(false);
        assert_eq!(samples.unwrap().map_lens(), [2, 2]);
        // Each finds its number of calls, then: a warm call, a counted call, and the copies go round.
        assert_eq!(diary, "a(a0a0a)b(b0b0b)a(a1a2a)b(b1b2b)a(a0a1a)b(b0b1b)");
    }

    #[test]
    fn an_interrupted_case_has_no_samples() {
        assert!(sample(true).0.is_none());
    }

    trait Lens {
        fn map_lens(&self) -> Vec<usize>;
    }

    impl Lens for Vec<Vec<f64>> {
        fn map_lens(&self) -> Vec<usize> {
            self.iter().map(Vec::len).collect()
        }
    }
}
