//! Everything that is tested through the public interface, in one program.

use ck_testing::alloc::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Asserts that an error is of a kind, and that its text has the given parts.
macro_rules! assert_error {
    ($error:expr, $kind:pat, $($part:expr),+) => {{
        let error: Error = $error;
        assert!(matches!(error, $kind), "{error:?} is not {}", stringify!($kind));
        let text = error.to_string();
        $(assert!(text.contains($part), "{text:?} does not say {:?}", $part);)+
    }};
}

mod attention;
mod files;
mod hostile;
mod layers;
mod metadata;
mod rope;
mod scaling;
mod weights;
