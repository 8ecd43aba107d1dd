//! Text files opened in chunks of different sizes.

use sawmill_source::{DelimitedFiles, DelimitedOptions, Source};

use crate::reading::{refusal, rows, with_control, written};

/// Reads the bytes at once and in chunks, units and batches of a few: the columns, rows and rejected records are
/// the same, or both are refused. Which of several faults is found first depends on the chunks.
pub fn the_same_in_chunks(name: &str, bytes: &[u8], options: &DelimitedOptions, size: u8) {
    let path = written(name, bytes);
    let read = |chunk: u64, unit_rows: u64, batch_rows: usize| {
        let files =
            with_control(|control| DelimitedFiles::open_in_chunks(&[&path], options, chunk, control))?;
        let all = rows(&files, unit_rows, batch_rows)?;
        assert_eq!(all.num_rows() as u64, files.rows());
        let rejected: Vec<_> = files
            .rejected()
            .iter()
            .map(|of| (of.line, of.byte_offset, of.reason.clone(), of.bytes.clone()))
            .collect();
        assert!(rejected.len() as u64 <= options.most_rejected.unwrap_or(0));
        Ok::<_, sawmill_source::Error>((files.inferred(), all, rejected))
    };
    let whole = read(1 << 20, 1 << 18, 1 << 10);
    let size = u64::from(size);
    let pieces = read(1 + size % 32, 1 + size / 8 % 8, 1 + size as usize % 5);
    match (whole, pieces) {
        (Ok(whole), Ok(pieces)) => assert_eq!(whole, pieces),
        (Err(whole), Err(pieces)) => {
            refusal(&whole);
            refusal(&pieces);
        }
        (whole, pieces) => panic!("at once: {whole:?}\nin pieces: {pieces:?}"),
    }
}
