//! What the tests of this crate share.

use crate::OpError;
use ck_isa::Isa;
use ck_testing::compare::check_bits;
use std::sync::Once;

/// Every level of this machine; the first call of a run prints them.
///
/// They are those that the environment [expects](ck_testing::run::EXPECT_LEVELS), if it does.
pub(crate) fn levels() -> Vec<Isa> {
    static PRINT: Once = Once::new();
    let levels: Vec<Isa> = Isa::available().collect();
    PRINT.call_once(|| {
        let names: Vec<String> = levels.iter().map(Isa::to_string).collect();
        // Straight to the terminal: what a test prints is shown only when it fails.
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "levels under test: {}", names.join(", "));
    });
    ck_testing::run::assert_expected_levels(&levels);
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
