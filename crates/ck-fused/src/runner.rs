//! How a layer is run: the level, the strategy and the team.

use crate::step::Step;
use crate::{DecodeLayer, LayerError, Strategy};
use ck_isa::Isa;
use ck_ops::{CacheElement, KvCache, RopeTable};
use ck_threadpool::{Team, ThreadPool, solo};
use std::fmt;

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
#[derive(Clone, Copy)]
pub struct Runner<'p> {
    isa: Isa,
    strategy: Strategy,
    pool: Option<&'p ThreadPool>,
    team: usize,
    observer: Option<&'p Observer<'p>>,
}

/// Called by every member of a team at the end of each of its phases, with the phase and the member's index.
///
/// For measuring where time goes. It runs in the dispatch, so it must be quick, and it must not panic.
pub type Observer<'o> = dyn Fn(Phase, usize) + Sync + 'o;

/// A phase of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// The norm and the rows of Q, K and V.
    Project,
    /// The partial results of attention.
    Attend,
    /// The merge of partial results.
    Merge,
    /// The rows of the output.
    Output,
}

impl<'p> Runner<'p> {
    /// One thread, the caller's, with kernels of this level.
    #[must_use]
    pub const fn serial(isa: Isa) -> Self {
        Self { isa, strategy: Strategy::Serial, pool: None, team: 1, observer: None }
    }

    /// All members of a pool, with the strategy [`Strategy::Auto`].
    #[must_use]
    pub fn new(isa: Isa, pool: &'p ThreadPool) -> Self {
        let (pool, team) = (Some(pool), pool.threads());
        Self { isa, strategy: Strategy::Auto, pool, team, observer: None }
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

    /// The same with an observer of the phases.
    #[must_use]
    pub const fn with_observer(mut self, observer: &'p Observer<'p>) -> Self {
        self.observer = Some(observer);
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

    /// What one layer's phases read: the token's position is the cache's length.
    pub(crate) fn step<'s, E: CacheElement>(
        &'s self,
        layer: &'s DecodeLayer<'s>,
        rope: Option<&'s RopeTable>,
        cache: &'s KvCache<E>,
    ) -> Step<'s, E> {
        let (isa, observer, position) = (self.isa, self.observer, cache.len());
        Step { layer, isa, head_norms: layer.head_norms(), rope, position, cache, observer }
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

impl fmt::Debug for Runner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner")
            .field("isa", &self.isa)
            .field("strategy", &self.strategy)
            .field("team", &self.team)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_serial_strategy_has_a_team_of_one_whatever_the_pool() {
        let pool = ThreadPool::new(3).unwrap();
        let runner = Runner::new(Isa::Scalar, &pool);
        assert_eq!(runner.team(), 3);
        assert_eq!(runner.with_strategy(Strategy::Serial).team(), 1);
        assert_eq!(Runner::serial(Isa::Scalar).team(), 1);
    }
}
