//! How a layer is run: the level and the strategy.

use ck_quant::Isa;
use std::fmt;
use std::str::FromStr;

/// How the work of one call is divided and ordered. All strategies give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strategy {
    /// One thread, phase after phase.
    Serial,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: [Self; 1] = [Self::Serial];

    /// The short name, such as `serial`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
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
#[error("unknown strategy {name:?}: expected {}", Strategy::ALL.map(Strategy::name).join(", "))]
pub struct UnknownStrategy {
    /// The name that was given.
    pub name: String,
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|strategy| strategy.name() == name);
        found.ok_or_else(|| UnknownStrategy { name: name.to_owned() })
    }
}

/// What runs a layer: a level and a strategy.
#[derive(Clone, Copy, Debug)]
pub struct Runner {
    isa: Isa,
    strategy: Strategy,
}

impl Runner {
    /// One thread, with kernels of this level.
    #[must_use]
    pub const fn serial(isa: Isa) -> Self {
        Self { isa, strategy: Strategy::Serial }
    }

    /// The level.
    #[must_use]
    pub const fn isa(&self) -> Isa {
        self.isa
    }

    /// The strategy.
    #[must_use]
    pub const fn strategy(&self) -> Strategy {
        self.strategy
    }
}
