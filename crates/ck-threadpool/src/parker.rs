//! Where one thread sleeps until another one wakes it.
//!
//! On Linux the word is a futex, reached through `libc`. Elsewhere, and under loom, a mutex and a
//! condition variable of the same contract stand in for it: they exist wherever the standard library
//! does, and only threads that sleep pay for them.

use crate::sync::{AtomicU32, Ordering};

const AWAKE: u32 = 0;
const PARKED: u32 = 1;

/// The bed of one member.
///
/// The order that makes a lost wake-up impossible: the sleeper calls [`Parker::announce`], then
/// publishes by a read-modify-write of a shared word that it is about to sleep, and sleeps only if
/// that word did not yet hold what it waits for. A waker changes the same word by a
/// read-modify-write, and calls [`Parker::wake`] if it saw the sleeper's mark. Of two operations on
/// one word one comes first, so either the sleeper sees the news or the waker sees the mark; and
/// with the mark it sees the announcement, which was made before.
#[derive(Debug)]
pub(crate) struct Parker {
    futex: Futex,
}

impl Parker {
    pub(crate) fn new() -> Self {
        Self { futex: Futex::new(AWAKE) }
    }

    /// Says that this thread is about to sleep here.
    pub(crate) fn announce(&self) {
        // An exchange, not a store, as is every change of this word: each then comes after the one
        // before in the eyes of all threads, late wakers of an earlier sleep included.
        self.futex.word.swap(PARKED, Ordering::Acquire);
    }

    /// Takes the announcement back.
    pub(crate) fn stay_awake(&self) {
        self.futex.word.swap(AWAKE, Ordering::Acquire);
    }

    /// Sleeps until [`Parker::wake`] was called after the announcement.
    pub(crate) fn sleep(&self) {
        while self.futex.word.load(Ordering::Acquire) == PARKED {
            self.futex.wait(PARKED);
        }
    }

    /// Wakes the thread that sleeps here, or is about to; does nothing for one that is awake.
    pub(crate) fn wake(&self) {
        if self.futex.word.load(Ordering::Relaxed) == PARKED
            && self.futex.word.swap(AWAKE, Ordering::Release) == PARKED
        {
            self.futex.wake_one();
        }
    }
}

#[derive(Debug)]
struct Futex {
    word: AtomicU32,
    #[cfg(any(loom, not(target_os = "linux")))]
    lock: crate::sync::blocking::Mutex<()>,
    #[cfg(any(loom, not(target_os = "linux")))]
    changed: crate::sync::blocking::Condvar,
}

#[cfg(all(target_os = "linux", not(loom)))]
impl Futex {
    fn new(value: u32) -> Self {
        Self { word: AtomicU32::new(value) }
    }

    /// Blocks while the word is `expected`; may return for no reason.
    fn wait(&self, expected: u32) {
        // SAFETY: the first argument points to an aligned u32 that `self` keeps alive for the whole
        // call; FUTEX_WAIT reads no further argument than the null time-out after it.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.word.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                expected,
                std::ptr::null::<libc::timespec>(),
            );
        }
    }

    fn wake_one(&self) {
        // SAFETY: the first argument is the address of an aligned u32, used by the kernel as a key;
        // FUTEX_WAKE reads no memory and no argument after the count.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.word.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                1,
            );
        }
    }
}

#[cfg(any(loom, not(target_os = "linux")))]
impl Futex {
    fn new(value: u32) -> Self {
        Self {
            word: AtomicU32::new(value),
            lock: crate::sync::blocking::Mutex::new(()),
            changed: crate::sync::blocking::Condvar::new(),
        }
    }

    /// Blocks while the word is `expected`; may return for no reason.
    fn wait(&self, expected: u32) {
        let guard = self.lock.lock().expect("no thread panics while it holds this lock");
        if self.word.load(Ordering::Relaxed) == expected {
            drop(self.changed.wait(guard).expect("no thread panics while it holds this lock"));
        }
    }

    fn wake_one(&self) {
        // The word was changed before. Passing through the lock puts that change either before the
        // sleeper's look at the word or after the start of its wait.
        drop(self.lock.lock().expect("no thread panics while it holds this lock"));
        self.changed.notify_one();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_wake_before_the_sleep_is_not_lost() {
        let parker = Parker::new();
        parker.announce();
        parker.wake();
        parker.sleep();
    }

    #[test]
    fn a_wake_without_announcement_leaves_nothing_behind() {
        let parker = Parker::new();
        parker.wake();
        assert_eq!(parker.futex.word.load(Ordering::Relaxed), AWAKE);
        parker.announce();
        assert_eq!(parker.futex.word.load(Ordering::Relaxed), PARKED);
    }

    #[test]
    fn a_sleeper_is_woken() {
        let parker = Parker::new();
        let news = AtomicBool::new(false);
        parker.announce();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                parker.sleep();
                assert!(news.load(Ordering::Relaxed));
            });
            std::thread::sleep(std::time::Duration::from_millis(20));
            news.store(true, Ordering::Relaxed);
            parker.wake();
        });
    }
}
