//! What several test files need: a guard against hangs, and nothing else.

use std::io::Write as _;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// How much longer everything may take under an emulator or a sanitizer, which [`SLOW`] tells.
const SLOWER: u32 = 20;

/// Set where a run is slow.
const SLOW: &str = "CK_SLOW";

/// Ends the process with a message if it is not dropped in time, as a hung test would never fail.
pub(crate) struct HangGuard {
    _alive: Sender<()>,
}

impl HangGuard {
    pub(crate) fn seconds(test: &'static str, seconds: u64) -> Self {
        let factor = if std::env::var_os(SLOW).is_some() { SLOWER } else { 1 };
        let limit = factor * Duration::from_secs(seconds);
        let (alive, ended) = channel::<()>();
        std::thread::spawn(move || {
            if ended.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                // Not by a macro, whose output a test's harness would keep and lose.
                let _ = writeln!(std::io::stderr(), "{test} hangs: not done after {limit:?}");
                std::process::abort();
            }
        });
        Self { _alive: alive }
    }
}
