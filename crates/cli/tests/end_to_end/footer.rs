//! `sawmill footer`: each view on files of the generator and of the `parquet` crate's writer.

mod bloom;
mod damaged;
mod datasets;
mod dictionaries;
mod fix;
mod impossible;
mod mapped;
mod memory;
mod odd;
mod page_headers;
mod pages;
mod programs;
mod rows;
mod standard_input;
mod views;

use std::fs;
use std::path::Path;

use parquet::file::metadata::ParquetMetaDataReader;

use crate::harness::{Ran, sawmill};

fn footer(path: &Path) -> Ran {
    sawmill(["footer".as_ref(), path.as_os_str()])
}

/// Runs `sawmill footer` on a file.
fn view(path: &Path, args: &[&str]) -> Ran {
    let path = path.to_str().unwrap();
    sawmill(["footer", path].iter().chain(args))
}

/// The `parquet` crate's reading of a file.
fn peer(path: &Path) -> parquet::file::metadata::ParquetMetaData {
    ParquetMetaDataReader::new().parse_and_finish(&fs::File::open(path).unwrap()).unwrap()
}

fn contacts(dir: &Path, rows: &str, files: &str) {
    sawmill(["gen", "contacts", "--rows", rows, "--files", files, "--out", dir.to_str().unwrap()]).ok();
}
