//! See [`ck_fuzz::gguf`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ck_fuzz::gguf::check(bytes));
