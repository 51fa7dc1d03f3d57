//! The crates as their users get them: packed for crates.io, and in a package outside of this workspace.

use super::Outcome;
use super::tools::target_dir;
use crate::cargo::{cargo, workspace_root};
use anyhow::Result;

/// Builds every package from what would be uploaded, and nothing else.
pub(super) fn packages() -> Result<Outcome> {
    let mut command = cargo(&["package", "--workspace", "--allow-dirty", "--locked"]);
    Outcome::of(command.env("CARGO_TARGET_DIR", target_dir("packages")))
}

/// Runs the packages in `examples/`, which have dependencies that the workspace does not.
pub(super) fn examples() -> Result<Outcome> {
    let mut command = cargo(&["run", "--locked"]);
    command.current_dir(workspace_root().join("examples").join("candle-op"));
    Outcome::of(command.env("CARGO_TARGET_DIR", target_dir("examples")))
}
