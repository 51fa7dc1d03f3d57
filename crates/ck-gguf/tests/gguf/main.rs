//! Everything that is tested through the public interface, in one program.

/// Asserts that an error is of a kind, and that its text has the given parts.
macro_rules! assert_error {
    ($error:expr, $kind:pat, $($part:expr),+) => {{
        let error: Error = $error;
        assert!(matches!(error, $kind), "{error:?} is not {}", stringify!($kind));
        let text = error.to_string();
        $(assert!(text.contains($part), "{text:?} does not say {:?}", $part);)+
    }};
}

mod counting;
mod files;
mod hostile;
mod layers;
mod metadata;
mod rope;
mod weights;
