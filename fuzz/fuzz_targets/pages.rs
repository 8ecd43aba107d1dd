//! Any bytes as the pages of a flat column chunk, of any type, encoding and codec: our decoder reads the values that
//! the `parquet` crate reads, in batches of any size, or both refuse them.
//!
//! The first five bytes choose the column and its pages; the others are the dictionary and the pages' bytes before
//! they are compressed, or, so that the decompressors get any bytes, after that.
#![no_main]

mod column_chunk;
mod reading;

use std::sync::Once;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use column_chunk::Chunk;
use libfuzzer_sys::fuzz_target;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;
use reading::{refusal, rows, written};
use sawmill_source::{ParquetFiles, Source, guarded, silence_guarded_panics};

/// What the `parquet` crate reads; fewer rows than promised are a fault.
fn theirs(bytes: Vec<u8>, schema: &SchemaRef, promised: u64) -> Result<RecordBatch, ParquetError> {
    guarded(|| {
        let options = ArrowReaderOptions::new().with_schema(schema.clone());
        let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(Bytes::from(bytes), options)?;
        let batches = reader.with_batch_size(1024).build()?.collect::<Result<Vec<_>, _>>()?;
        let all = concat_batches(schema, &batches)?;
        match all.num_rows() as u64 == promised {
            true => Ok(all),
            false => Err(ParquetError::General("rows are missing".to_owned())),
        }
    })
}

fuzz_target!(|input: &[u8]| {
    static SILENT: Once = Once::new();
    SILENT.call_once(|| {
        // libFuzzer ends with any panic; those of the `parquet` crate are caught.
        drop(std::panic::take_hook());
        silence_guarded_panics();
    });
    let Some(chunk) = Chunk::of(input) else { return };
    let bytes = chunk.file();
    let path = written("pages.parquet", &bytes);
    let files = match ParquetFiles::open(&[&path]) {
        Ok(files) => files,
        Err(error) => return drop(refusal(&error)),
    };
    let whole = rows(&files, 1 << 18, 1024);
    let pieces = rows(&files, 7, 3);
    let theirs = theirs(bytes, files.schema(), files.rows());
    match (&whole, &pieces, &theirs) {
        (Ok(whole), Ok(pieces), Ok(theirs)) => {
            assert_eq!(whole, pieces, "in pieces");
            assert_eq!(whole, theirs, "by the parquet crate");
        }
        (Err(error), Err(_), Err(_)) => drop(refusal(error)),
        // Pages of another size than they claim are refused before they are read.
        (Err(whole), Err(pieces), Ok(_)) if chunk.raw => {
            assert!([whole, pieces].iter().all(|error| refusal(error).contains("in a page")), "{whole}");
        }
        _ => panic!("at once: {whole:?}\nin pieces: {pieces:?}\ntheirs: {theirs:?}"),
    }
});
