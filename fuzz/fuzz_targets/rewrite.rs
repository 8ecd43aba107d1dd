//! Any bytes as a Parquet file whose footer is repaired and scrubbed: a repaired footer needs no repair, and a scrubbed one
//! has as many parts.
//!
//! The last four bytes of the input are the footer's length; the magic bytes follow. A longer footer is the whole input.
#![no_main]

#[path = "../../crates/inspect/src/rewrite/tests/promises.rs"]
#[allow(dead_code, reason = "tests count what was done with files")]
mod promises;

use libfuzzer_sys::fuzz_target;
use sawmill_inspect::{Repaired, repaired, scrubbed, write_file};

fuzz_target!(|input: &[u8]| {
    let Some((file, stated)) = input.split_last_chunk::<4>() else { return };
    let len = u32::from_le_bytes(*stated).min(file.len() as u32);
    promises::keep(&[file, &len.to_le_bytes(), b"PAR1"].concat());
});
