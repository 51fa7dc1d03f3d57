//! See [`ck_fuzz::blocks`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ck_fuzz::blocks::check(bytes));
