//! See [`ck_fuzz::cache`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ck_fuzz::cache::check(bytes));
