//! Whether this process is a fork of the one that made a pool.
//!
//! A child of `fork` has the pool's memory and none of its workers. A handler that the system runs
//! in the child counts forks; comparing that count costs a load, where asking for the process number
//! costs a system call.

use std::sync::atomic::{AtomicU32, Ordering};

static FORKS: AtomicU32 = AtomicU32::new(0);

/// How many forks lie between the first process with a pool and this one.
pub(crate) fn generation() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Makes sure that forks are counted. Where it fails (no memory), a child must not use the pool.
#[cfg(unix)]
pub(crate) fn count_forks() {
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static REGISTERED: std::sync::Once = std::sync::Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the handler only adds to an atomic, which is allowed in a child of a process with
        // threads; it is a static function, so it can be called for as long as the process lives.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// There is no fork here.
#[cfg(not(unix))]
pub(crate) fn count_forks() {}
