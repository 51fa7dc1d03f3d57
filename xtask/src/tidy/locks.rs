//! Packages outside of the workspace have lock files of their own, which no build of the workspace sees. They must know
//! the crates of the workspace as they are now, else a build with `--locked` fails there.

use super::Texts;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// A lock file, as far as it matters here.
#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    #[serde(default)]
    dependencies: Vec<String>,
    /// Where it comes from; a package of this repository has none.
    source: Option<String>,
}

/// A manifest, as far as it matters here.
#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    dependencies: BTreeMap<String, toml::Value>,
}

/// What the lock files of packages outside of the workspace say wrongly of its crates.
pub(super) fn faults(texts: &Texts) -> Vec<String> {
    let Some(Ok(workspace)) = texts.get("Cargo.lock").map(|text| toml::from_str::<Lock>(text))
    else {
        return vec!["Cargo.lock: not a lock file".to_owned()];
    };
    let others = texts.iter().filter(|(path, _)| path.ends_with("/Cargo.lock"));
    others.flat_map(|(path, text)| faults_of(path, text, &workspace, texts)).collect()
}

fn faults_of(path: &str, text: &str, workspace: &Lock, texts: &Texts) -> Vec<String> {
    let Ok(lock) = toml::from_str::<Lock>(text) else {
        return vec![format!("{path}: not a lock file")];
    };
    let own =
        |name: &str| workspace.package.iter().find(|own| own.name == name && own.source.is_none());
    let mut faults = Vec::new();
    for locked in lock.package.iter().filter(|locked| locked.source.is_none()) {
        let Some(own) = own(&locked.name) else { continue };
        let manifest = format!("crates/{}/Cargo.toml", own.name);
        let manifest = texts.get(&manifest).and_then(|text| toml::from_str(text).ok());
        let Some(manifest) = manifest else { continue };
        let stale = own.version != locked.version || !agrees(locked, &manifest, &own.dependencies);
        if stale {
            faults.push(format!(
                "{path}: {} has other dependencies now; `cargo metadata` there writes them down",
                locked.name
            ));
        }
    }
    faults
}

/// Whether the dependencies of a locked crate are those of its manifest. `known` are those that the workspace has locked, for
/// its tests too.
fn agrees(locked: &Locked, manifest: &Manifest, known: &[String]) -> bool {
    // A name stands with its version where two versions are in use.
    let name = |entry: &str| entry.split(' ').next().unwrap_or_default().to_owned();
    let locked: BTreeSet<String> = locked.dependencies.iter().map(|entry| name(entry)).collect();
    let known: BTreeSet<String> = known.iter().map(|entry| name(entry)).collect();
    let is_optional = |value: &toml::Value| {
        value.get("optional").and_then(toml::Value::as_bool).unwrap_or_default()
    };
    let mut needed = manifest.dependencies.iter().filter(|(_, value)| !is_optional(value));
    locked.is_subset(&known) && needed.all(|(name, _)| locked.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: &str = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\ndependencies = [\"b\", \"c\", \"of-tests\"]\n";
    const MANIFEST: &str = "[dependencies]\nb = \"1\"\nc = { version = \"1\", optional = true }\n";

    fn faults_with(other: &str) -> usize {
        let texts = [
            ("Cargo.lock", WORKSPACE),
            ("crates/a/Cargo.toml", MANIFEST),
            ("fuzz/Cargo.lock", other),
        ];
        faults(&texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into()).len()
    }

    #[test]
    fn a_lock_file_that_is_up_to_date_has_no_fault() {
        for dependencies in ["\"b\"", "\"b 1.0.0\", \"c\""] {
            let other = format!(
                "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\ndependencies = [{dependencies}]\n"
            );
            assert_eq!(faults_with(&other), 0, "{dependencies}");
        }
        assert_eq!(faults_with("[[package]]\nname = \"x\"\nversion = \"2.0.0\"\n"), 0);
    }

    #[test]
    fn missing_and_gone_dependencies_and_other_versions_are_found() {
        for (version, dependencies) in
            [("1.0.0", ""), ("1.0.0", "\"b\", \"gone\""), ("1.1.0", "\"b\"")]
        {
            let other = format!(
                "[[package]]\nname = \"a\"\nversion = \"{version}\"\ndependencies = [{dependencies}]\n"
            );
            assert_eq!(faults_with(&other), 1, "{version}: {dependencies}");
        }
        assert_eq!(faults_with("package = 1"), 1);
    }
}
