//! One pool for the whole process, for convenience.

use crate::builder::{BuildError, Builder};
use crate::pool::ThreadPool;
use std::sync::OnceLock;

static GLOBAL: OnceLock<ThreadPool> = OnceLock::new();

/// The pool of the whole process: made on first use, with [`available_cpus`](crate::available_cpus)
/// threads unless [`Builder::build_global`] was called before.
///
/// If the system refuses the threads, it has fewer; in the end only the caller. It is never dropped.
///
/// ```
/// let pool = ck_threadpool::global();
/// pool.run(|team| println!("member {} of {}", team.index(), team.size()));
/// ```
pub fn global() -> &'static ThreadPool {
    GLOBAL.get_or_init(|| {
        let most = crate::available_cpus().min(crate::word::MAX_THREADS);
        let pools = (1..=most).rev().map(ThreadPool::new);
        pools.flatten().next().expect("a pool of one member starts no thread")
    })
}

impl Builder {
    /// Makes the global pool from these options.
    ///
    /// # Errors
    ///
    /// [`BuildError::GlobalExists`] if there is one already; otherwise as [`Builder::build`].
    pub fn build_global(self) -> Result<&'static ThreadPool, BuildError> {
        let exists = |pool: &ThreadPool| BuildError::GlobalExists { threads: pool.threads() };
        if let Some(pool) = GLOBAL.get() {
            return Err(exists(pool));
        }
        let mut pool = Some(self.build()?);
        let global = GLOBAL.get_or_init(|| pool.take().expect("it is taken once"));
        // Left over if another thread was quicker.
        if pool.is_some() { Err(exists(global)) } else { Ok(global) }
    }
}
