//! The strategies: short compositions of the same phases. All give the same bits.

mod auto;
mod barrier;
mod multi_dispatch;
mod redundant;
mod unfused;
#[cfg(feature = "rayon")]
mod unfused_rayon;

pub(crate) use barrier::{Ends, Source, block};

use crate::LayerError;
use crate::runner::Runner;
use crate::scratch::Scratch;
use crate::step::Step;
use ck_ops::CacheElement;
use std::fmt;
use std::str::FromStr;

/// How the work of one call is divided and ordered. All strategies give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strategy {
    /// One thread, phase after phase.
    Serial,
    /// One dispatch, with a barrier between the phases that need one.
    Barrier,
    /// Three dispatches, without barriers.
    MultiDispatch,
    /// One dispatch without a barrier: every member computes the small shared work for itself.
    Redundant,
    /// One dispatch for every operation, as engines run a graph. The baseline.
    Unfused,
    /// The same on rayon's current pool: the runner's team says into how many shares the work is cut.
    #[cfg(feature = "rayon")]
    UnfusedRayon,
    /// Serial for a call of little work, else one dispatch with barriers: what measurements found best.
    Auto,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: &[Self] = &[
        Self::Serial,
        Self::Barrier,
        Self::MultiDispatch,
        Self::Redundant,
        Self::Unfused,
        #[cfg(feature = "rayon")]
        Self::UnfusedRayon,
        Self::Auto,
    ];

    /// The short name: `serial`, `barrier`, `multi-dispatch`, `redundant`, `unfused`, `unfused-rayon` or `auto`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Barrier => "barrier",
            Self::MultiDispatch => "multi-dispatch",
            Self::Redundant => "redundant",
            Self::Unfused => "unfused",
            #[cfg(feature = "rayon")]
            Self::UnfusedRayon => "unfused-rayon",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no strategy's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown strategy {name:?}: expected {}", names())]
pub struct UnknownStrategy {
    /// The name that was given.
    pub name: String,
}

/// The names of all strategies.
fn names() -> String {
    Strategy::ALL.iter().map(|strategy| strategy.name()).collect::<Vec<_>>().join(", ")
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().copied().find(|strategy| strategy.name() == name);
        found.ok_or_else(|| UnknownStrategy { name: name.to_owned() })
    }
}

/// Runs all phases of one step. The result and the new row of the cache are then in the scratch.
pub(crate) fn run<E: CacheElement>(
    runner: &Runner<'_>,
    step: Step<'_, E>,
    scratch: &mut Scratch<E>,
    input: &[f32],
    residual: Option<&[f32]>,
) -> Result<(), LayerError> {
    match runner.strategy() {
        Strategy::Serial | Strategy::Barrier => {
            barrier::run(runner, step, scratch, input, residual)
        }
        Strategy::Auto => {
            let runner = auto::choose(runner, step);
            barrier::run(&runner, step, scratch, input, residual)
        }
        Strategy::MultiDispatch => multi_dispatch::run(runner, step, scratch, input, residual),
        Strategy::Redundant => redundant::run(runner, step, scratch, input, residual),
        Strategy::Unfused => unfused::run(runner, step, scratch, input, residual),
        #[cfg(feature = "rayon")]
        Strategy::UnfusedRayon => unfused_rayon::run(runner, step, scratch, input, residual),
    }
}
