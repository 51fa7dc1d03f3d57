//! How a model that was trained on a short context is rotated in a longer one.
//!
//! Pair `i` turns by `f(i) = base^(-2 i / rot_dim)` per position, a whole turn every `2 pi / f(i)` positions. A
//! scaling slows the pairs that turn so slowly that training never showed them a whole turn, and leaves
//! the quick ones, which tell neighbours apart, more or less as they are.

use crate::OpError;
use std::f64::consts::TAU;

/// What becomes of the frequencies of the pairs. A pair's frequency is divided by its
/// [factor](super::RopeConfig::frequency_factors) first, if there are any.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum RopeScaling {
    /// Nothing.
    #[default]
    None,
    /// Every frequency is divided by `factor`: position interpolation (Chen et al. 2023, arXiv:2306.15595).
    Linear {
        /// By how much the context is longer than in training.
        factor: f64,
    },
    /// The rule of Llama 3.1 and later.
    Llama3(Llama3),
    /// The rule of Peng et al. 2023 (arXiv:2309.00071), as llama.cpp applies it.
    Yarn(Yarn),
}

/// The scaling of Llama 3.1 and later, by how often a pair turns within the original context.
///
/// Pairs of more than `high_freq_factor` turns keep their frequency, those of fewer than `low_freq_factor` are divided by
/// `factor`; between them, with `s = (turns - low) / (high - low)`, the frequency becomes
/// `(1 - s) f / factor + s f`.
///
/// Llama files in GGUF do not name the rule: they carry its result as
/// [frequency factors](super::RopeConfig::frequency_factors), in the tensor `rope_freqs.weight`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Llama3 {
    /// What the slow pairs are divided by.
    pub factor: f64,
    /// Pairs of fewer turns within the original context are slow.
    pub low_freq_factor: f64,
    /// Pairs of more turns within the original context are quick.
    pub high_freq_factor: f64,
    /// The context in training, in positions.
    pub original_context: usize,
}

impl Llama3 {
    /// The rule with the factors that Llama 3 models share, 1 and 4.
    #[must_use]
    pub const fn new(factor: f64, original_context: usize) -> Self {
        Self { factor, low_freq_factor: 1.0, high_freq_factor: 4.0, original_context }
    }

    /// Takes other bounds between slow and quick pairs.
    #[must_use]
    pub const fn with_freq_factors(mut self, low: f64, high: f64) -> Self {
        (self.low_freq_factor, self.high_freq_factor) = (low, high);
        self
    }

    fn scaled(&self, frequency: f64) -> f64 {
        let Self { factor, low_freq_factor: low, high_freq_factor: high, .. } = *self;
        let turns = self.original_context as f64 * frequency / TAU;
        let quick = ((turns - low) / (high - low)).clamp(0.0, 1.0);
        blend(frequency, factor, quick)
    }

    fn check(&self) -> Result<(), OpError> {
        let Self { low_freq_factor: low, high_freq_factor: high, .. } = *self;
        check_positive("factor", self.factor)?;
        check_positive("low_freq_factor", low)?;
        check_positive("high_freq_factor", high)?;
        check_original_context(self.original_context)?;
        check("high_freq_factor", "above low_freq_factor", high, high > low)
    }
}

/// The scaling of YaRN: pairs that turn more than `beta_fast` times within the original context keep their frequency,
/// those that turn less than `beta_slow` times are divided by `factor`, and between them is a ramp over the
/// numbers of the pairs. Queries and keys are lengthened besides, by [`magnitude`](Self::magnitude).
///
/// The fields have the meaning of llama.cpp's settings; `docs/numerics.md` has the formulas.
///
/// ```
/// # use ck_ops::{RopeConfig, RopeScaling, RopeTable, Yarn};
/// // Qwen2.5 on four times its context.
/// let yarn = Yarn::new(4.0, 32_768);
/// assert!((yarn.magnitude() - 1.138_629).abs() < 1e-6);
/// let config = RopeConfig::new(128, 1e6).with_scaling(RopeScaling::Yarn(yarn));
/// let table = RopeTable::new(config, 131_072)?;
/// # Ok::<(), ck_ops::OpError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Yarn {
    /// By how much the context is longer than in training.
    pub factor: f64,
    /// The context in training, in positions.
    pub original_context: usize,
    /// How much of the ramp is applied, from 0 (all pairs are divided by `factor`) to 1.
    pub ext_factor: f64,
    /// Pairs of more turns within the original context keep their frequency.
    pub beta_fast: f64,
    /// Pairs of fewer turns within the original context are divided by `factor`.
    pub beta_slow: f64,
    /// How much of the lengthening is taken back, 0 for none of it and 1 for all: `mscale_all_dim` of some models.
    pub log_multiplier: f64,
}

impl Yarn {
    /// The rule with the settings that nearly all models share: the whole ramp, between 32 turns and 1.
    #[must_use]
    pub const fn new(factor: f64, original_context: usize) -> Self {
        let (ext_factor, beta_fast, beta_slow, log_multiplier) = (1.0, 32.0, 1.0, 0.0);
        Self { factor, original_context, ext_factor, beta_fast, beta_slow, log_multiplier }
    }

    /// Applies less of the ramp.
    #[must_use]
    pub const fn with_ext_factor(mut self, ext_factor: f64) -> Self {
        self.ext_factor = ext_factor;
        self
    }

    /// Takes other ends of the ramp.
    #[must_use]
    pub const fn with_betas(mut self, beta_fast: f64, beta_slow: f64) -> Self {
        (self.beta_fast, self.beta_slow) = (beta_fast, beta_slow);
        self
    }

    /// Takes back a part of the lengthening.
    #[must_use]
    pub const fn with_log_multiplier(mut self, log_multiplier: f64) -> Self {
        self.log_multiplier = log_multiplier;
        self
    }

    /// What cosines and sines are multiplied by: with `m(l) = 1 + 0.1 l ln(factor)` for factors above 1, else 1, it is
    /// `m(1) / m(log_multiplier)`; and 1 where none of the ramp is applied.
    #[must_use]
    pub fn magnitude(&self) -> f64 {
        if self.ext_factor == 0.0 || self.factor <= 1.0 {
            return 1.0;
        }
        let lengthening = |multiplier: f64| 1.0 + 0.1 * multiplier * libm::log(self.factor);
        lengthening(1.0) / lengthening(self.log_multiplier)
    }

    fn scaled(&self, frequency: f64, pair: usize, ramp: (f64, f64)) -> f64 {
        let (first, last) = ramp;
        let along = ((pair as f64 - first) / (last - first).max(0.001)).clamp(0.0, 1.0);
        blend(frequency, self.factor, (1.0 - along) * self.ext_factor)
    }

    /// The pair from which on frequencies are changed, and the one from which on they are changed entirely.
    fn ramp(&self, rot_dim: usize, base: f64) -> (f64, f64) {
        let rot_dim = rot_dim as f64;
        // The number of the pair, not rounded, that turns so often within the original context.
        let pair_of = |turns: f64| {
            let turns = self.original_context as f64 / (turns * TAU);
            rot_dim * libm::log(turns) / (2.0 * libm::log(base))
        };
        let first = libm::floor(pair_of(self.beta_fast)).max(0.0);
        let last = libm::ceil(pair_of(self.beta_slow)).min(rot_dim - 1.0);
        (first, last)
    }

    fn check(&self, base: f64) -> Result<(), OpError> {
        let Self { ext_factor, beta_fast, beta_slow, log_multiplier, .. } = *self;
        check_positive("factor", self.factor)?;
        check_positive("beta_fast", beta_fast)?;
        check_positive("beta_slow", beta_slow)?;
        check_original_context(self.original_context)?;
        check("beta_fast", "at least beta_slow", beta_fast, beta_fast >= beta_slow)?;
        let part = (0.0..=1.0).contains(&ext_factor);
        check("ext_factor", "from 0 to 1", ext_factor, part)?;
        let multiplier = log_multiplier.is_finite() && log_multiplier >= 0.0;
        check("log_multiplier", "finite and not negative", log_multiplier, multiplier)?;
        // A base of 1 or less has no pair that turns slower than another.
        check("the frequency base", "above 1 for YaRN", base, base > 1.0)
    }
}

impl RopeScaling {
    pub(super) fn check(&self, base: f64) -> Result<(), OpError> {
        match self {
            Self::None => Ok(()),
            Self::Linear { factor } => check_positive("factor", *factor),
            Self::Llama3(llama3) => llama3.check(),
            Self::Yarn(yarn) => yarn.check(base),
        }
    }

    /// Scales the frequencies of all pairs, which are in order.
    pub(super) fn scale(&self, frequencies: &mut [f64], base: f64) {
        match self {
            Self::None => {}
            Self::Linear { factor } => frequencies.iter_mut().for_each(|f| *f /= factor),
            Self::Llama3(llama3) => {
                frequencies.iter_mut().for_each(|f| *f = llama3.scaled(*f));
            }
            Self::Yarn(yarn) => {
                let ramp = yarn.ramp(2 * frequencies.len(), base);
                for (pair, f) in frequencies.iter_mut().enumerate() {
                    *f = yarn.scaled(*f, pair, ramp);
                }
            }
        }
    }

    /// What cosines and sines are multiplied by.
    pub(super) fn magnitude(&self) -> f64 {
        if let Self::Yarn(yarn) = self { yarn.magnitude() } else { 1.0 }
    }
}

/// A frequency of which the part `kept` is not divided by `factor`. Nothing and everything are exact.
fn blend(frequency: f64, factor: f64, kept: f64) -> f64 {
    frequency / factor * (1.0 - kept) + frequency * kept
}

fn check(what: &'static str, expected: &'static str, found: f64, ok: bool) -> Result<(), OpError> {
    if ok { Ok(()) } else { Err(OpError::RopeScaling { what, expected, found }) }
}

fn check_positive(what: &'static str, found: f64) -> Result<(), OpError> {
    check(what, "finite and positive", found, found.is_finite() && found > 0.0)
}

fn check_original_context(positions: usize) -> Result<(), OpError> {
    check("original_context", "at least 1", positions as f64, positions > 0)
}
