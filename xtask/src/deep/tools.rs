//! What several steps need: folders, programs, and a toolchain that can build the standard library.

use super::Outcome;
use crate::cargo::workspace_root;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where a step builds, apart from the ordinary builds and from other steps.
pub(super) fn target_dir(step: &str) -> PathBuf {
    workspace_root().join("target").join("deep").join(step)
}

/// The outcome of a step that needs `programs`, if one of them is not here.
pub(super) fn missing(programs: &[&str]) -> Option<Outcome> {
    let absent = |program: &&&str| {
        let mut command = Command::new(program);
        let status = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        !status.is_ok_and(|status| status.success())
    };
    let program = programs.iter().find(absent)?;
    Some(Outcome::Missing(format!("{program} is not installed")))
}

/// The outcome of a step that is set up for x86-64 Linux only, elsewhere.
pub(super) fn elsewhere() -> Option<Outcome> {
    let here = cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"));
    (!here).then(|| Outcome::Missing(format!("it is set up for {HOST} only")))
}

/// The target that the steps run on.
pub(super) const HOST: &str = "x86_64-unknown-linux-gnu";

/// Lets a sanitizer refuse memory as the system does, instead of ending the process: what is asked for in vain is an
/// error value of the crates.
pub(super) const REFUSE_LARGE: &str = "allocator_may_return_null=1";

/// This toolchain together with the source of its standard library, which sanitizers and other targets need.
pub(super) struct SourceToolchain(PathBuf);

impl SourceToolchain {
    /// Makes the toolchain, unless an earlier run has.
    pub(super) fn make() -> Result<Self, Outcome> {
        let folder = target_dir("toolchain");
        let scripts = workspace_root().join("xtask").join("scripts");
        let script = scripts.join("toolchain-with-source.sh");
        let status = Command::new("bash").arg(script).arg(&folder).status();
        if status.is_ok_and(|status| status.success()) {
            return Ok(Self(folder.join("toolchain").join("bin")));
        }
        let what = "the library source of this toolchain could not be had";
        Err(Outcome::Missing(what.to_owned()))
    }

    /// A cargo command that builds the standard library with everything else, for `target`, in a folder
    /// of its own.
    pub(super) fn cargo(&self, arguments: &[&str], target: &str, folder: &Path) -> Command {
        let mut command = Command::new(self.0.join("cargo"));
        command
            .args(&arguments[..1])
            .args(["-Zbuild-std", "--locked", "--target", target])
            .args(&arguments[1..])
            .current_dir(workspace_root())
            // Set by the outer cargo, it would lead rustc to the outer toolchain's library folder.
            .env_remove("LD_LIBRARY_PATH")
            .env("RUSTC", self.0.join("rustc"))
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_TARGET_DIR", folder);
        command
    }
}
