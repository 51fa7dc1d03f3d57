//! Where the recorded layers are.
//!
//! `golden/README.md` beside this crate's sources says what they hold and where they come from. Reading
//! them is the business of the crate that reads GGUF.

use std::path::PathBuf;

/// The folder with the recorded layers.
#[must_use]
pub fn golden_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// The recorded layers that the repository carries, in a fixed order.
///
/// ```
/// let files = ck_testing::golden::golden_files();
/// assert_eq!(files.len(), 3);
/// assert!(files.iter().all(|file| file.is_file()));
/// ```
#[must_use]
pub fn golden_files() -> Vec<PathBuf> {
    ["smollm2-layer0.gguf", "smollm2-layer4.gguf", "qwen2-random-layer1.gguf"]
        .map(|name| golden_folder().join(name))
        .to_vec()
}

#[cfg(test)]
mod tests {
    use super::{golden_files, golden_folder};

    #[test]
    fn every_gguf_file_in_the_folder_is_listed_and_is_one() {
        let mut listed = golden_files();
        listed.sort();
        let mut found: Vec<_> = std::fs::read_dir(golden_folder())
            .expect("the folder is part of the repository")
            .map(|entry| entry.expect("a readable entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "gguf"))
            .collect();
        found.sort();
        assert_eq!(listed, found);
        for file in listed {
            let bytes = std::fs::read(&file).expect("a readable file");
            assert_eq!(bytes[..8], *b"GGUF\x03\0\0\0", "{}", file.display());
        }
    }
}
