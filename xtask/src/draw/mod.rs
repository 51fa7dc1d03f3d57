//! `cargo xtask draw`: the pictures of the documentation, drawn from the workspace.

mod crates;
mod formats;
mod layers;
mod picture;
mod token;

use crate::cargo::workspace_root;
use anyhow::{Context, Result, bail};
use picture::Picture;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// Arguments of `cargo xtask draw`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail if a picture in docs/images is not the one that this command draws.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let folder = workspace_root().join("docs").join("images");
    let drawn = all()?;
    if args.check {
        let faults = faults(&folder, &drawn)?;
        for fault in &faults {
            println!("docs/images/{fault}: run `cargo xtask draw`");
        }
        println!("draw: {} pictures, {} faults", drawn.len(), faults.len());
        return Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, svg) in drawn {
        let path = folder.join(name);
        fs::write(&path, svg).with_context(|| format!("cannot write {}", path.display()))?;
        println!("docs/images/{name}");
    }
    Ok(ExitCode::SUCCESS)
}

/// All pictures by the names of their files.
fn all() -> Result<BTreeMap<&'static str, String>> {
    let pictures = [
        ("crates.svg", crates::draw()?),
        ("q5_0.svg", formats::q5_0()),
        ("q8_0.svg", formats::q8_0()),
        ("token.svg", token::draw()),
    ];
    pictures.into_iter().map(|(name, picture)| Ok((name, finished(name, &picture)?))).collect()
}

fn finished(name: &str, picture: &Picture) -> Result<String> {
    if let Some(text) = picture.too_wide().first() {
        bail!("{name}: {text:?} does not fit where it stands");
    }
    Ok(picture.svg())
}

/// What in `folder` is not as drawn.
fn faults(folder: &Path, drawn: &BTreeMap<&str, String>) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for (name, svg) in drawn {
        match fs::read_to_string(folder.join(name)) {
            Ok(found) if found == *svg => {}
            Ok(_) => faults.push(format!("{name} is stale")),
            Err(error) => faults.push(format!("{name} cannot be read ({error})")),
        }
    }
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if !drawn.contains_key(&name[..]) {
            faults.push(format!("{name} is drawn by nobody"));
        }
    }
    faults.sort();
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_missing_and_foreign_pictures_are_found() {
        let folder = tempfile();
        let drawn = BTreeMap::from(
            [("a.svg", "a"), ("b.svg", "b"), ("c.svg", "c")]
                .map(|(name, svg)| (name, svg.to_owned())),
        );
        for (name, text) in [("a.svg", "a"), ("b.svg", "old"), ("d.svg", "d")] {
            fs::write(folder.join(name), text).unwrap();
        }
        let faults = faults(&folder, &drawn).unwrap();
        let starts = ["b.svg is stale", "c.svg cannot be read", "d.svg is drawn by nobody"];
        assert_eq!(faults.len(), starts.len(), "{faults:?}");
        assert!(faults.iter().zip(starts).all(|(fault, start)| fault.starts_with(start)));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn words_that_do_not_fit_are_refused() {
        let mut picture = Picture::new(100, 100, "a");
        let rect = picture::Rect::new(0, 0, 40, 20);
        let words = [(picture::Style::PLAIN, "much too long for this")];
        picture.labelled(rect, picture::Fill::White, &words);
        let error = finished("a.svg", &picture).unwrap_err().to_string();
        assert!(error.contains("a.svg") && error.contains("much too long"), "{error}");
    }

    fn tempfile() -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("ck-draw-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }
}
