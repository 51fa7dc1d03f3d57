//! What the tests of this crate share.

use crate::OpError;
use ck_isa::{Isa, Level};
use ck_testing::compare::check_bits;
use std::sync::Once;

/// Every level of this machine; the first call of a run prints them.
///
/// Where the environment names a level in `CK_REQUIRE_LEVEL`, it must be the best one: that is how a run
/// under an emulated CPU shows that it tested what it was meant to.
pub(crate) fn levels() -> Vec<Isa> {
    static PRINT: Once = Once::new();
    let levels: Vec<Isa> = Isa::available().collect();
    PRINT.call_once(|| {
        let names: Vec<String> = levels.iter().map(Isa::to_string).collect();
        // Straight to the terminal: what a test prints is shown only when it fails.
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "levels under test: {}", names.join(", "));
    });
    if let Ok(name) = std::env::var("CK_REQUIRE_LEVEL") {
        let required: Level = name.parse().expect("a level's name in CK_REQUIRE_LEVEL");
        assert_eq!(Isa::detect().level(), required, "CK_REQUIRE_LEVEL names the best level");
    }
    levels
}

/// Runs an operation on every level and gives the scalar result.
///
/// # Panics
///
/// If another level's result has other bits, or another error.
#[track_caller]
pub(crate) fn on_every_level(
    operation: impl Fn(Isa) -> Result<Vec<f32>, OpError>,
) -> Result<Vec<f32>, OpError> {
    let scalar = operation(Isa::Scalar);
    for isa in levels() {
        match (operation(isa), &scalar) {
            (Ok(got), Ok(expected)) => {
                if let Err(report) = check_bits(&got, expected) {
                    panic!("{isa} and scalar differ: {report}");
                }
            }
            // As text, in which NaN equals NaN.
            (got, _) => assert_eq!(format!("{got:?}"), format!("{scalar:?}"), "{isa} and scalar"),
        }
    }
    scalar
}
