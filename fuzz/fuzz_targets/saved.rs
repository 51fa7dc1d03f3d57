//! See [`ck_fuzz::saved`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ck_fuzz::saved::check(bytes));
