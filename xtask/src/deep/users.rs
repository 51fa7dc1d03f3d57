//! The crates as their users get them: packed for crates.io, and in a package outside of this workspace.

use super::Outcome;
use super::tools::target_dir;
use crate::cargo::{cargo, workspace_root};
use anyhow::{Context as _, Result, ensure};
use std::path::Path;

/// Builds every package from what would be uploaded, and nothing else.
pub(super) fn packages() -> Result<Outcome> {
    let mut command = cargo(&["package", "--workspace", "--allow-dirty", "--locked"]);
    Outcome::of(command.env("CARGO_TARGET_DIR", target_dir("packages")))
}

/// Runs every example of the crates, none of which needs arguments, and the packages in `examples/`, which have
/// dependencies that the workspace does not.
pub(super) fn examples() -> Result<Outcome> {
    let mut commands = Vec::new();
    for member in names(&workspace_root().join("crates"))? {
        let folder = workspace_root().join("crates").join(&member).join("examples");
        let files = if folder.exists() { names(&folder)? } else { Vec::new() };
        for file in files {
            let example = file.trim_end_matches(".rs");
            let arguments = ["run", "--release", "--locked", "-p", &member, "--example", example];
            commands.push(cargo(&arguments));
        }
    }
    ensure!(commands.len() > 1, "crates/*/examples: expected examples, found {}", commands.len());
    let mut command = cargo(&["run", "--locked"]);
    command.current_dir(workspace_root().join("examples").join("candle-op"));
    command.env("CARGO_TARGET_DIR", target_dir("examples"));
    commands.push(command);
    Outcome::of_all(commands)
}

/// What a folder holds, in order.
fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}
