//! What is timed: one implementation of one case.

use anyhow::{Result, ensure};
use ck_testing::compare::check_bits;
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// How a contender's answer is compared with the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Agreement {
    /// The same bits.
    Bits,
    /// Within this part of the largest magnitude of the reference.
    Within(f32),
    /// It has no answer: it only moves memory.
    None,
}

/// Whose work a contender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// This project's.
    Ours,
    /// Another project's.
    Peer,
    /// Nobody's: a loop that shows what the machine can do.
    Limit,
}

/// One implementation of one case, ready to run.
pub trait Contender {
    /// Its name in tables and records.
    fn name(&self) -> String;

    /// Whose work it is.
    fn side(&self) -> Side {
        Side::Ours
    }

    /// Its turn comes: its threads may poll from now on.
    fn start(&mut self) {}

    /// Its turn is over: its threads leave the CPUs to the others.
    fn stop(&mut self) {}

    /// Does the work once, on copy number `copy` of the data (taken modulo the number of copies).
    fn run(&mut self, copy: usize);

    /// The answer of the last run.
    fn answer(&self) -> Vec<f32>;

    /// How the answer is judged.
    fn agreement(&self) -> Agreement;
}

/// A right answer.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// The numbers.
    pub answer: Vec<f32>,
    /// What was only passed on into them, such as a residual; or nothing. A deviation is measured by the rest.
    pub passed_on: Vec<f32>,
}

impl From<Vec<f32>> for Expected {
    fn from(answer: Vec<f32>) -> Self {
        Self { answer, passed_on: Vec::new() }
    }
}

impl Expected {
    /// The largest magnitude of what was computed.
    fn largest(&self) -> f32 {
        let passed_on = self.passed_on.iter().copied().chain(std::iter::repeat(0.0));
        self.answer.iter().zip(passed_on).fold(0.0, |most, (x, base)| (x - base).abs().max(most))
    }
}

/// A contender and the answer that it must give.
pub struct Entry<'a> {
    /// Who.
    pub contender: Box<dyn Contender + 'a>,
    /// The right answer.
    pub expected: Rc<Expected>,
}

impl<'a> Entry<'a> {
    /// A contender with its right answer.
    pub fn new(contender: impl Contender + 'a, expected: &Rc<Expected>) -> Self {
        Self { contender: Box::new(contender), expected: Rc::clone(expected) }
    }

    /// Runs on one copy and compares the answer.
    ///
    /// # Errors
    ///
    /// As [`check`].
    pub fn check(&mut self, copy: usize) -> Result<()> {
        self.contender.start();
        let result = check(self.contender.as_mut(), copy, &self.expected);
        self.contender.stop();
        result
    }
}

/// Runs `contender` on one copy and compares its answer with `expected`.
///
/// # Errors
///
/// A report of what differs.
pub fn check(contender: &mut dyn Contender, copy: usize, expected: &Expected) -> Result<()> {
    contender.run(copy);
    let name = contender.name();
    let right = &expected.answer;
    match contender.agreement() {
        Agreement::None => {}
        Agreement::Bits => {
            let result = check_bits(&contender.answer(), right);
            ensure!(result.is_ok(), "{name}: {}", result.err().unwrap_or_default());
        }
        Agreement::Within(part) => {
            let got = contender.answer();
            ensure!(got.len() == right.len(), "{name}: {} answers, not {}", got.len(), right.len());
            let largest = expected.largest();
            let off = got.iter().zip(right).map(|(got, x)| (got - x).abs());
            // A NaN is off by everything, and no comparison holds for it.
            let off =
                off.fold(0.0, |most, off| if off > most || off.is_nan() { off } else { most });
            ensure!(
                off <= part * largest,
                "{name}: off by {off:e}, and the largest answer is {largest:e}"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says what it is told to say.
    struct Parrot(Vec<f32>, Agreement);

    impl Contender for Parrot {
        fn name(&self) -> String {
            "parrot".to_owned()
        }

        fn run(&mut self, _copy: usize) {}

        fn answer(&self) -> Vec<f32> {
            self.0.clone()
        }

        fn agreement(&self) -> Agreement {
            self.1
        }
    }

    fn holds(answer: &[f32], agreement: Agreement, expected: &Expected) -> bool {
        check(&mut Parrot(answer.to_vec(), agreement), 0, expected).is_ok()
    }

    #[test]
    fn bits_must_be_equal() {
        let expected = vec![1.0, 0.0].into();
        assert!(holds(&[1.0, 0.0], Agreement::Bits, &expected));
        for wrong in [&[1.0, -0.0][..], &[1.0], &[f32::NAN, 0.0], &[1.0 + f32::EPSILON, 0.0]] {
            assert!(!holds(wrong, Agreement::Bits, &expected), "{wrong:?}");
        }
    }

    #[test]
    fn a_deviation_is_measured_by_what_was_computed_not_by_what_was_passed_on() {
        let expected = Expected { answer: vec![100.5, -100.0], passed_on: vec![100.0, -100.0] };
        let within = Agreement::Within(0.01);
        assert!(holds(&[100.504, -100.004], within, &expected));
        assert!(!holds(&[100.504, -100.006], within, &expected));
        assert!(!holds(&[100.0, -100.0], within, &expected), "nothing was computed");
        assert!(!holds(&[100.5, f32::NAN], within, &expected));
        assert!(!holds(&[100.5], within, &expected));
    }
}
