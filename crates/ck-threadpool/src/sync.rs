//! Everything concurrent that this crate uses: the standard library's, or loom's under `--cfg loom`.
//!
//! No other file names an atomic, a lock, a cell or a spin hint by another path, so that a model
//! checks the very code that ships.

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    hint::spin_loop,
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    sync::{Arc, Mutex},
    thread::{self, yield_now},
};

#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    sync::{Arc, Mutex},
    thread::{self, yield_now},
};

/// The CPU's pause itself, to time it: a model must not see that as a choice of schedules.
pub(crate) use std::hint::spin_loop as pause_instruction;

/// What stands in for a futex.
#[cfg(any(loom, not(target_os = "linux")))]
pub(crate) mod blocking {
    #[cfg(loom)]
    pub(crate) use loom::sync::{Condvar, Mutex};
    #[cfg(not(loom))]
    pub(crate) use std::sync::{Condvar, Mutex};
}

/// `std::cell::UnsafeCell` with the access functions of loom's, which see who looks when.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn with<R>(&self, look: impl FnOnce(*const T) -> R) -> R {
        look(self.0.get())
    }

    pub(crate) fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
        change(self.0.get())
    }
}
