//! How a pool is made.

use crate::cpus::available_cpus;
use crate::pool::ThreadPool;
use crate::wait::WaitPolicy;
use crate::word::MAX_THREADS;

/// Why a pool could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A number of threads that no pool has.
    #[error("a pool has between 1 and {max} threads, found {found}")]
    Threads {
        /// The number that was asked for.
        found: usize,
        /// The largest number.
        max: usize,
    },
    /// The system refused a thread. Those that were started have ended again.
    #[error("the system gave no thread for worker {worker} of {threads}: {source}")]
    Spawn {
        /// Which worker it was, from 1.
        worker: usize,
        /// The number of threads that was asked for.
        threads: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// A name that no thread can have.
    #[error("the name of a thread has no NUL, found one at byte {at} of {name:?}")]
    Name {
        /// The name.
        name: String,
        /// Where the NUL is.
        at: usize,
    },
    /// The global pool exists already, so that it cannot be made another way.
    #[error("the global pool exists already, with {threads} threads")]
    GlobalExists {
        /// The number of threads that it has.
        threads: usize,
    },
}

/// Options of a [`ThreadPool`].
///
/// ```
/// use ck_threadpool::{ThreadPool, WaitPolicy};
///
/// let pool = ThreadPool::builder()
///     .threads(2)
///     .wait_policy(WaitPolicy::SLEEP)
///     .thread_name("decode")
///     .build()?;
/// assert_eq!(pool.threads(), 2);
/// # Ok::<(), ck_threadpool::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    pub(crate) threads: Option<usize>,
    pub(crate) policy: WaitPolicy,
    pub(crate) name: String,
    pub(crate) stack_size: usize,
    pub(crate) pin: bool,
}

impl Builder {
    /// The default options.
    pub fn new() -> Self {
        Self {
            threads: None,
            policy: WaitPolicy::DEFAULT,
            name: "ck-pool".to_owned(),
            stack_size: 2 << 20,
            pin: false,
        }
    }

    /// How many members a full team has, the caller among them. Default: [`available_cpus`].
    ///
    /// A larger number than that works, and is told by [`ThreadPool::cpus`].
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: Some(threads), ..self }
    }

    /// How long threads poll before they sleep.
    pub fn wait_policy(self, policy: WaitPolicy) -> Self {
        Self { policy, ..self }
    }

    /// What the workers are called; a hyphen and the member's index follow. Default: `ck-pool`.
    pub fn thread_name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// The size of the workers' stacks in bytes. Default: 2 MiB, whatever the environment says.
    pub fn stack_size(self, bytes: usize) -> Self {
        Self { stack_size: bytes, ..self }
    }

    /// Whether every worker is to stay on one CPU. Default: no.
    ///
    /// The CPUs are those that the building thread may use, from its second one on: the first is left
    /// to the caller, which itself is never pinned. Works on Linux. Failing to is not an error.
    pub fn pin_workers(self, pin: bool) -> Self {
        Self { pin, ..self }
    }

    /// Starts the pool.
    ///
    /// # Errors
    ///
    /// [`BuildError::Threads`] for a number of threads outside `1..=1023`, [`BuildError::Name`] for a name with a NUL,
    /// [`BuildError::Spawn`] if the system refuses a thread.
    pub fn build(self) -> Result<ThreadPool, BuildError> {
        let cpus = available_cpus();
        let threads = self.threads.unwrap_or(cpus.min(MAX_THREADS));
        if !(1..=MAX_THREADS).contains(&threads) {
            return Err(BuildError::Threads { found: threads, max: MAX_THREADS });
        }
        if let Some(at) = self.name.find('\0') {
            return Err(BuildError::Name { name: self.name, at });
        }
        ThreadPool::start(&self, threads, cpus)
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}
