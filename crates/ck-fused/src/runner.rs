//! How a layer is run: the level, the strategy and the team.

use crate::{LayerError, Strategy};
use ck_isa::Isa;
use ck_threadpool::{Team, ThreadPool, solo};

/// What runs a layer: a level, a strategy and the team that works.
///
/// ```
/// use ck_fused::{Runner, Strategy};
/// use ck_isa::Isa;
/// use ck_threadpool::ThreadPool;
///
/// let pool = ThreadPool::new(2)?;
/// let runner = Runner::new(Isa::detect(), &pool).with_strategy(Strategy::Barrier);
/// assert_eq!(runner.team(), 2);
/// # Ok::<(), ck_threadpool::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Runner<'p> {
    isa: Isa,
    strategy: Strategy,
    pool: Option<&'p ThreadPool>,
    team: usize,
}

impl<'p> Runner<'p> {
    /// One thread, the caller's, with kernels of this level.
    #[must_use]
    pub const fn serial(isa: Isa) -> Self {
        Self { isa, strategy: Strategy::Serial, pool: None, team: 1 }
    }

    /// All members of a pool, with the strategy [`Strategy::Auto`].
    #[must_use]
    pub fn new(isa: Isa, pool: &'p ThreadPool) -> Self {
        Self { isa, strategy: Strategy::Auto, pool: Some(pool), team: pool.threads() }
    }

    /// The same with another strategy. [`Strategy::Serial`] leaves the pool alone.
    #[must_use]
    pub const fn with_strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// The same on a part of the pool: at least one member, at most all.
    #[must_use]
    pub fn with_team(mut self, members: usize) -> Self {
        self.team = members.clamp(1, self.pool.map_or(1, ThreadPool::threads));
        self
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

    /// How many members work, the caller among them.
    #[must_use]
    pub const fn team(&self) -> usize {
        match self.strategy {
            Strategy::Serial => 1,
            _ => self.team,
        }
    }

    /// Runs `f` on the team. The first error of a member is the result.
    pub(crate) fn dispatch<F>(&self, f: F) -> Result<(), LayerError>
    where
        F: Fn(&mut Team<'_>) -> Result<(), LayerError> + Sync,
    {
        match self.pool {
            Some(pool) if self.team() > 1 => pool.try_run_on(self.team(), f),
            _ => solo(f),
        }
    }
}
