//! The pool: its threads, and the calls that start a dispatch.

use crate::builder::{BuildError, Builder};
use crate::shared::{Outcome, Shared, lock};
use crate::slice::SharedSlice;
use crate::sync::{Arc, Mutex, thread};
use crate::team::Team;
use crate::word::OrderWord;
use crate::{affinity, fork, local};
use crossbeam_utils::CachePadded;
use std::panic::resume_unwind;
use std::sync::TryLockError;

/// Threads that wait to run a closure together with the caller.
///
/// Share it between threads in an `Arc`; two dispatches at once take turns. Dropping it ends the
/// threads.
#[derive(Debug)]
pub struct ThreadPool {
    shared: Arc<Shared>,
    /// Held by the caller of the dispatch that runs.
    turn: CachePadded<Mutex<()>>,
    workers: Vec<thread::JoinHandle<()>>,
}

impl ThreadPool {
    /// A pool of `threads` members, the caller among them, with default options.
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    pub fn new(threads: usize) -> Result<Self, BuildError> {
        Self::builder().threads(threads).build()
    }

    /// Options to make a pool with.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn start(
        options: &Builder,
        threads: usize,
        cpus: usize,
    ) -> Result<Self, BuildError> {
        fork::count_forks();
        let shared = Arc::new(Shared::new(threads, cpus, options.policy));
        let allowed = if options.pin { affinity::allowed() } else { Vec::new() };
        let mut pool = Self { shared, turn: CachePadded::new(Mutex::new(())), workers: Vec::new() };
        for index in 1..threads {
            // With a size of its own, so that the standard library does not look for one in the environment.
            let builder = thread::Builder::new().stack_size(options.stack_size);
            let builder = builder.name(format!("{}-{index}", options.name));
            let cpu = (!allowed.is_empty()).then(|| allowed[index % allowed.len()]);
            let shared = Arc::clone(&pool.shared);
            let worker = builder.spawn(move || {
                if let Some(cpu) = cpu {
                    affinity::pin(cpu);
                }
                let _inside = local::enter();
                shared.work(index);
            });
            match worker {
                Ok(handle) => pool.workers.push(handle),
                // Dropping the pool ends the workers that were started.
                Err(source) => return Err(BuildError::Spawn { worker: index, threads, source }),
            }
        }
        Ok(pool)
    }

    /// How many members a full team has, the caller among them.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.shared.threads()
    }

    /// How many CPUs the process could use when the pool was made ([`available_cpus`]).
    ///
    /// A pool with more threads than this works, but its members share CPUs: they never poll, and
    /// every hand-off costs a switch of threads.
    ///
    /// [`available_cpus`]: crate::available_cpus
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.shared.cpus()
    }

    /// Runs `f` once on every member of the pool, and returns when all have returned.
    ///
    /// The caller is member 0. `f` may borrow from the caller's stack. Nothing is allocated, with up to
    /// eight shared slices in a phase. It must not wait for another thread that dispatches on this pool: that thread
    /// waits for its turn.
    ///
    /// From inside a dispatch of the same pool, or in a child process that was forked, `f` runs on
    /// the calling thread alone, as a team of one: a dispatch that any team size serves is served by
    /// one. From inside a dispatch of another pool it does too if this pool is busy. From several
    /// threads at once, the dispatches take turns.
    ///
    /// # Panics
    ///
    /// Resumes the panic of the lowest member that panicked, after all have left; the pool stays
    /// usable. Panics if a member returned while others waited at a barrier, and in a child process that
    /// member 0 forked inside of the dispatch.
    pub fn run<F>(&self, f: F)
    where
        F: Fn(&mut Team<'_>) + Sync,
    {
        self.run_on(self.threads(), f);
    }

    /// [`ThreadPool::run`] on a team of `members`: at least 1, at most all.
    ///
    /// The workers beyond are not disturbed, asleep or not. A team of one is a call of `f`.
    ///
    /// # Panics
    ///
    /// As [`ThreadPool::run`].
    #[inline]
    pub fn run_on<F>(&self, members: usize, f: F)
    where
        F: Fn(&mut Team<'_>) + Sync,
    {
        let size = members.min(self.threads());
        if size <= 1 {
            f(&mut Team::alone(local::next_id()));
        } else {
            self.dispatch(size, &f);
        }
    }

    /// [`ThreadPool::run_on`] for a closure that can fail.
    ///
    /// A member that returns an error breaks the dispatch off: members at a barrier leave it by
    /// unwinding (see [`Team::barrier`]), and those that have not reached one yet leave when they do.
    ///
    /// # Errors
    ///
    /// The error of the lowest member that returned one of its own accord. All members of a phase
    /// finish the phase, so which error that is does not depend on their speed; unless another one returned
    /// without an error where others met at a barrier, which is a panic if it is found first.
    ///
    /// # Panics
    ///
    /// As [`ThreadPool::run`].
    pub fn try_run_on<E, F>(&self, members: usize, f: F) -> Result<(), E>
    where
        E: Send,
        F: Fn(&mut Team<'_>) -> Result<(), E> + Sync,
    {
        let first: Mutex<Option<(usize, E)>> = Mutex::new(None);
        self.run_on(members, |team| {
            if let Err(error) = f(team)
                && !team.interrupted()
            {
                let mut first = lock(&first);
                if first.as_ref().is_none_or(|&(index, _)| team.index() < index) {
                    *first = Some((team.index(), error));
                }
                drop(first);
                team.break_off();
            }
        });
        let first = lock(&first).take();
        first.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// [`ThreadPool::try_run_on`] on every member.
    ///
    /// # Errors
    ///
    /// As [`ThreadPool::try_run_on`].
    ///
    /// # Panics
    ///
    /// As [`ThreadPool::run`].
    pub fn try_run<E, F>(&self, f: F) -> Result<(), E>
    where
        E: Send,
        F: Fn(&mut Team<'_>) -> Result<(), E> + Sync,
    {
        self.try_run_on(self.threads(), f)
    }

    /// [`ThreadPool::run`] with every member's result, in the order of the members.
    ///
    /// This one allocates, the vector that it returns.
    ///
    /// # Panics
    ///
    /// As [`ThreadPool::run`].
    pub fn collect<R, F>(&self, f: F) -> Vec<R>
    where
        R: Send,
        F: Fn(&mut Team<'_>) -> R + Sync,
    {
        let mut results: Vec<Option<R>> = (0..self.threads()).map(|_| None).collect();
        let slots = SharedSlice::new(&mut results);
        self.run(|team| {
            let result = f(team);
            *slots.own(team) = Some(result);
        });
        results.into_iter().flatten().collect()
    }

    /// Sends the workers to sleep at once, and after each dispatch from now on.
    ///
    /// A paused pool still works; every dispatch then pays for waking its workers.
    pub fn pause(&self) {
        self.shared.set(OrderWord::PAUSED);
    }

    /// Ends a pause: wakes the workers, which then poll for the next dispatch as usual.
    pub fn resume(&self) {
        self.shared.clear_and_wake(OrderWord::PAUSED);
    }

    fn dispatch<F>(&self, size: usize, f: &F)
    where
        F: Fn(&mut Team<'_>) + Sync,
    {
        let id = local::next_id();
        if self.shared.forked() {
            return f(&mut Team::alone(id));
        }
        let turn = if local::inside() {
            // Waiting here could be waiting for oneself, over any number of pools.
            match self.turn.try_lock() {
                Ok(turn) => turn,
                Err(TryLockError::Poisoned(error)) => error.into_inner(),
                Err(TryLockError::WouldBlock) => return f(&mut Team::alone(id)),
            }
        } else {
            self.turn.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
        };
        let inside = local::enter();
        let outcome = self.shared.dispatch(size, id, f);
        drop(inside);
        drop(turn);
        match outcome {
            Outcome::Done => {}
            Outcome::Panicked(payload) => resume_unwind(payload),
            Outcome::MissedBarrier => {
                panic!("a member returned from a dispatch while others waited at a barrier")
            }
            Outcome::Forked => panic!(
                "this process was forked inside of a dispatch: what the other members do happens in its parent"
            ),
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        let workers = std::mem::take(&mut self.workers);
        if self.shared.forked() {
            // They are threads of the parent process.
            return std::mem::forget(workers);
        }
        self.shared.set_and_wake(OrderWord::SHUTDOWN);
        for worker in workers {
            // A worker catches its jobs' panics; it cannot have one of its own to report.
            drop(worker.join());
        }
    }
}
