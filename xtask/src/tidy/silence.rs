//! A library neither prints, nor exits, nor aborts, nor reads the environment: clippy refuses it, where the
//! crate asks for that.

use super::Texts;

/// What the libraries ask clippy for; `clippy.toml` has the functions that are disallowed.
const LINTS: &str = "\
#![cfg_attr(
    not(test),
    deny(clippy::print_stdout, clippy::print_stderr, clippy::exit, clippy::disallowed_methods)
)]";

/// The crate that only tests use.
const OF_TESTS: &str = "crates/ck-testing/src/lib.rs";

/// Libraries that do not ask for the lints.
pub(super) fn faults(texts: &Texts) -> Vec<String> {
    let libraries = texts.iter().filter(|(path, _)| {
        path.starts_with("crates/") && path.ends_with("/src/lib.rs") && *path != OF_TESTS
    });
    let loud = libraries.filter(|(_, text)| !text.contains(LINTS));
    loud.map(|(path, _)| format!("{path}: a library asks for these lints:\n{LINTS}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_without_the_lints_is_found() {
        let texts = |text: &str| Texts::from([("crates/a/src/lib.rs".to_owned(), text.to_owned())]);
        assert_eq!(faults(&texts(LINTS)), [""; 0]);
        assert_eq!(faults(&texts("//! A library.")).len(), 1);
    }
}
