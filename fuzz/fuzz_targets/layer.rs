//! See [`ck_fuzz::layer`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ck_fuzz::layer::check(bytes));
