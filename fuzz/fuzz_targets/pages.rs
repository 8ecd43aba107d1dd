//! Any bytes as the pages of a flat column chunk, of any type, encoding and codec: they are read or refused, within the
//! limits of memory, and batches of any size hold the same values.
//!
//! The first five bytes choose the column and its pages; the others are the dictionary and the pages' bytes before
//! they are compressed, or, so that the decompressors get any bytes, after that.
#![no_main]

mod column_chunk;
mod reading;
#[path = "../../crates/footer/src/interop/writer.rs"]
#[allow(dead_code, reason = "the target needs some of its methods")]
mod thrift_writer;

use std::sync::Once;

use column_chunk::Chunk;
use libfuzzer_sys::fuzz_target;
use reading::{refusal, rows, written};
use sawmill_source::{ParquetFiles, silence_guarded_panics};

fuzz_target!(|input: &[u8]| {
    static SILENT: Once = Once::new();
    SILENT.call_once(|| {
        // libFuzzer ends with any panic, but panics of the `parquet` crate are caught.
        drop(std::panic::take_hook());
        silence_guarded_panics();
    });
    let Some(chunk) = Chunk::new(input) else { return };
    let path = written("pages.parquet", &chunk.file());
    let files = match ParquetFiles::open(&[&path]) {
        Ok(files) => files,
        Err(error) => return drop(refusal(&error)),
    };
    // Values that a page has too many or too few of are found in the batch that they are in.
    match (rows(&files, 1 << 18, 1024), rows(&files, 7, 3)) {
        (Ok(whole), Ok(pieces)) => assert_eq!(whole, pieces, "in pieces"),
        (whole, pieces) => [whole, pieces].iter().for_each(|read| drop(read.as_ref().map_err(refusal))),
    }
});
