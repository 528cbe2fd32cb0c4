#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| groundkit_fuzz::archive::check(data));
