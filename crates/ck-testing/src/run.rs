//! What the environment says about a run of the tests.

use std::fmt::Display;

/// The variable that names the levels that this machine must have: `scalar,avx2`.
pub const EXPECT_LEVELS: &str = "CK_EXPECT_LEVELS";

/// The variable that says that this run is slow, because of an emulator or a sanitizer.
pub const SLOW: &str = "CK_SLOW";

/// Asserts that the levels under test are those that [`EXPECT_LEVELS`] names, if it is set.
///
/// A run under an emulated CPU sets it, so that it cannot test something else without anybody noticing.
///
/// # Panics
///
/// If they are not.
pub fn assert_expected_levels<L: Display>(available: &[L]) {
    if let Ok(expected) = std::env::var(EXPECT_LEVELS) {
        let names: Vec<String> = available.iter().map(L::to_string).collect();
        assert_eq!(names.join(","), expected, "the levels of this machine and {EXPECT_LEVELS}");
    }
}

/// `all`, or in a [slow](SLOW) run `few`: the same test on fewer cases or smaller sizes.
#[must_use]
pub fn all_or_few<T>(all: T, few: T) -> T {
    if std::env::var_os(SLOW).is_some() { few } else { all }
}
