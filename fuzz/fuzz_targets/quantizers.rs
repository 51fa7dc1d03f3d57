//! See [`ck_fuzz::quantizers`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ck_fuzz::quantizers::check(bytes));
