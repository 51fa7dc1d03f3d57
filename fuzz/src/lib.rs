//! What the fuzz targets check, as functions of bytes.
//!
//! A target is three lines in `fuzz_targets/` around one of these functions, so that the same check also runs
//! without a fuzzer: `cargo test` replays every file of `corpus/`, where the seeds are and what once was found.

pub mod blocks;
pub mod cache;
pub mod gguf;
pub mod layer;
pub mod quantizers;
pub mod saved;

/// A check of some bytes: it panics where a promise is broken.
pub type Check = fn(&[u8]);

/// Every target by its name, which is also that of its folder in `corpus/`.
pub const TARGETS: [(&str, Check); 6] = [
    ("blocks", blocks::check),
    ("cache", cache::check),
    ("gguf", gguf::check),
    ("layer", layer::check),
    ("quantizers", quantizers::check),
    ("saved", saved::check),
];

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}
