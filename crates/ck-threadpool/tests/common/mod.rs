//! What several test files need: a guard against hangs, and nothing else.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// Ends the process with a message if it is not dropped in time, as a hung test would never fail.
pub(crate) struct HangGuard {
    _alive: Sender<()>,
}

impl HangGuard {
    pub(crate) fn seconds(test: &'static str, seconds: u64) -> Self {
        let limit = Duration::from_secs(seconds);
        let (alive, ended) = channel::<()>();
        std::thread::spawn(move || {
            if ended.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                eprintln!("{test} hangs: still not done after {limit:?}");
                std::process::abort();
            }
        });
        Self { _alive: alive }
    }
}
