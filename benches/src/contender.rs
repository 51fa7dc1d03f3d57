//! What is timed: one implementation of one case.

use anyhow::{Result, ensure};
use ck_testing::compare::check_bits;

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

/// One implementation of one case, ready to run.
pub trait Contender {
    /// Its name in tables and records.
    fn name(&self) -> String;

    /// Does the work once, on copy number `copy` of the data (taken modulo the number of copies).
    fn run(&mut self, copy: usize);

    /// The answer of the last run.
    fn answer(&self) -> Vec<f32>;

    /// How the answer is judged.
    fn agreement(&self) -> Agreement;
}

/// Runs `contender` on one copy and compares its answer with `expected`.
///
/// # Errors
///
/// A report of what differs.
pub fn check(contender: &mut dyn Contender, copy: usize, expected: &[f32]) -> Result<()> {
    contender.run(copy);
    let name = contender.name();
    match contender.agreement() {
        Agreement::None => {}
        Agreement::Bits => {
            let result = check_bits(&contender.answer(), expected);
            ensure!(result.is_ok(), "{name}: {}", result.err().unwrap_or_default());
        }
        Agreement::Within(part) => {
            let got = contender.answer();
            ensure!(got.len() == expected.len(), "{name}: {} answers", got.len());
            let largest = expected.iter().fold(0f32, |largest, x| largest.max(x.abs()));
            let off = got.iter().zip(expected).map(|(got, x)| (got - x).abs()).fold(0.0, f32::max);
            ensure!(
                off <= part * largest,
                "{name}: off by {off:e}, the largest answer is {largest:e}"
            );
        }
    }
    Ok(())
}
