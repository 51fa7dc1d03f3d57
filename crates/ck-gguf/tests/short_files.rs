//! Files on disk that are shorter than their headers say: errors, from a mapping and from a copy.

use ck_gguf::{AttentionLayer, GgufFile, MappedFile};
use ck_testing::golden::golden_files;
use std::fs;
use std::path::PathBuf;

/// A file that goes when the test ends.
struct Temporary(PathBuf);

impl Temporary {
    fn new(bytes: &[u8]) -> Self {
        let name = format!("ck-gguf-short-{}-{}.gguf", std::process::id(), bytes.len());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, bytes).unwrap();
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Whether the attention layer of a recording can be read from these bytes.
fn is_whole(bytes: &[u8]) -> bool {
    GgufFile::parse(bytes).is_ok_and(|file| AttentionLayer::read(&file, 0).is_ok())
}

#[test]
fn files_that_end_early_are_refused_mapped_or_read() {
    let whole = fs::read(&golden_files()[0]).unwrap();
    assert!(is_whole(&whole));
    for len in [0, 1, 8, 24, 1000, whole.len() / 2, whole.len() - 1] {
        let file = Temporary::new(&whole[..len]);
        assert!(!is_whole(&fs::read(&file.0).unwrap()), "{len} bytes, read");
        // SAFETY: nobody else knows the file, and it lives longer than the mapping.
        let mapped = unsafe { MappedFile::open(&file.0) };
        assert!(!mapped.is_ok_and(|bytes| is_whole(&bytes)), "{len} bytes, mapped");
    }
}
