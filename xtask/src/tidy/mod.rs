//! `cargo xtask tidy`: rules of this workspace that a script can hold.

mod evidence;
mod inventory;
mod locks;
mod silence;

use anyhow::{Context, Result};
use ck_isa::Level;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// No file of code is longer.
const LONGEST: usize = 600;

/// What is not the project's own text. In a linked work tree, .git is a file.
const SKIPPED: [&str; 2] = ["target", ".git"];

/// What no code may contain. In two parts each, so that this file may be checked too.
const FORBIDDEN: [&str; 4] = [
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    // A test that is left out says why: #[ignore = "..."].
    concat!("#[ig", "nore]"),
    concat!("db", "g!("),
];

/// Folders of one machine, which mean nothing on another one.
const PRIVATE_PATHS: [&str; 5] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/tm", "p/wt"),
    concat!("../sha", "red"),
];

/// The text files of the workspace by their paths from the root, with slashes.
type Texts = BTreeMap<String, String>;

/// The path of a file from `root`, with slashes.
fn relative(root: &Path, path: &Path) -> String {
    let parts = path.strip_prefix(root).unwrap_or(path).components();
    parts.map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// Runs every rule on every file and prints what breaks one.
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let files = files(root)?;
    // What is not text, such as a recorded layer, has no rules.
    let texts: Texts = files
        .iter()
        .filter_map(|path| Some((relative(root, path), fs::read_to_string(path).ok()?)))
        .collect();
    let mut faults = Vec::new();
    for (name, text) in &texts {
        for (line, fault) in file_faults(Path::new(name), text) {
            faults.push(format!("{name}:{line}: {fault}"));
        }
    }
    faults.extend(inventory::faults(&texts));
    faults.extend(evidence::faults(&texts));
    faults.extend(silence::faults(&texts));
    faults.extend(locks::faults(&texts));
    for fault in &faults {
        println!("{fault}");
    }
    println!("tidy: {} files, {} faults", files.len(), faults.len());
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// All files below `folder`, in order.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let skipped = path.file_name().is_some_and(|name| SKIPPED.iter().any(|skip| name == *skip));
        if skipped {
            continue;
        }
        if path.is_dir() {
            files.extend(self::files(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The faults of one file, each with its line.
fn file_faults(path: &Path, text: &str) -> Vec<(usize, String)> {
    let mut faults = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        for part in PRIVATE_PATHS.iter().filter(|part| line.contains(*part)) {
            faults.push((index + 1, format!("the path {part} is of one machine")));
        }
    }
    if path.extension().is_none_or(|extension| extension != "rs") {
        return faults;
    }
    if lines.len() > LONGEST {
        faults.push((lines.len(), format!("more than {LONGEST} lines")));
    }
    for (index, line) in lines.iter().enumerate() {
        for word in FORBIDDEN.iter().filter(|word| line.contains(*word)) {
            faults.push((index + 1, format!("{word} must not be in the repository")));
        }
        if is_unsafe(line) && !has_safety_comment(&lines[..index]) {
            faults.push((index + 1, "unsafe without a SAFETY comment above it".to_owned()));
        }
    }
    let level =
        Level::ALL.into_iter().find(|level| path.file_stem().is_some_and(|s| s == level.name()));
    if let Some(level) = level.filter(|level| *level != Level::Scalar) {
        faults.extend(feature_faults(level, &lines));
    }
    faults
}

/// Whether a line of code opens an unsafe block or implementation.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    ["unsafe {", "unsafe impl"].iter().any(|opening| code.contains(opening) && !code.contains('"'))
}

/// Whether the nearest comment above, at most six lines of code away, says SAFETY.
fn has_safety_comment(above: &[&str]) -> bool {
    let is_comment = |line: &&&str| line.trim_start().starts_with("//");
    let Some(distance) = above.iter().rev().take(7).position(|line| is_comment(&line)) else {
        return false;
    };
    let comments = above[..above.len() - distance].iter().rev().take_while(is_comment);
    comments.into_iter().any(|line| line.contains("SAFETY:"))
}

/// A kernel of a level may use exactly the features that detection asks for.
fn feature_faults(level: Level, lines: &[&str]) -> Vec<(usize, String)> {
    let right: BTreeSet<&str> = level.features().iter().copied().collect();
    let mut faults = Vec::new();
    let mut found = 0;
    for (index, line) in lines.iter().enumerate() {
        let Some(list) = line.trim().strip_prefix("#[target_feature(enable = \"") else { continue };
        found += 1;
        let list: BTreeSet<&str> =
            list.trim_end_matches("\")]").split(',').map(str::trim).collect();
        if list != right {
            faults
                .push((index + 1, format!("the features of {level} are {right:?}, not {list:?}")));
        }
    }
    if found == 0 {
        faults.push((1, format!("a file of level {level} without a target_feature attribute")));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(path: &str, text: &str) -> Vec<usize> {
        file_faults(Path::new(path), text).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn the_workspace_is_tidy() {
        assert_eq!(run(&crate::cargo::workspace_root()).unwrap(), ExitCode::SUCCESS);
    }

    #[test]
    fn every_rule_finds_its_fault() {
        for word in FORBIDDEN {
            assert_eq!(faults_of("a.rs", &format!("fn f() {{\n{word}\n}}")), [2]);
        }
        for path in PRIVATE_PATHS {
            assert_eq!(faults_of("a.md", &format!("see\n{path}x")), [2]);
        }
        assert_eq!(faults_of("a.rs", &"\n".repeat(LONGEST + 1)), [LONGEST + 1]);
        let block = "unsafe { f() }";
        assert_eq!(faults_of("a.rs", block), [1]);
        assert_eq!(
            faults_of("a.rs", &format!("// SAFETY: a proof.\n// In two lines.\n{block}")),
            [0usize; 0]
        );
        assert_eq!(faults_of("a.rs", &format!("// Not a proof.\n{block}")), [2]);
    }

    #[test]
    fn a_kernel_with_other_features_than_its_level_is_found() {
        let attribute = |features: &str| format!("#[target_feature(enable = \"{features}\")]\n");
        assert_eq!(faults_of("avx2.rs", &attribute("f16c,avx2,fma")), [0usize; 0]);
        assert_eq!(faults_of("avx2.rs", &attribute("avx2,fma")), [1]);
        assert_eq!(faults_of("avx2.rs", &attribute("avx2,fma,f16c,avx512f")), [1]);
        assert_eq!(faults_of("avx2.rs", "fn f() {}"), [1]);
        assert_eq!(faults_of("wide.rs", &attribute("avx2")), [0usize; 0]);
    }
}
