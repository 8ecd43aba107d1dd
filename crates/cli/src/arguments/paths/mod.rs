//! Finds the files that the paths of a command line name: files, directories, patterns and lists.

pub(crate) mod file_lists;
mod globs;
mod walk;

use std::io;
use std::path::{Path, PathBuf};

use crate::error::Error;
use walk::Found;

/// The files that `paths` name. A directory stands for the `.parquet` files below it and a pattern for its
/// matches, both in the order of their names; a list stands for the files on its lines.
///
/// Directories and patterns skip names that start with `_` or `.`.
pub(crate) fn parquet_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in &file_lists::expanded(paths)? {
        // A file may have the name of a pattern.
        if globs::is_pattern(path) && path.symlink_metadata().is_err() {
            files.append(&mut matching(path)?);
        } else if path.is_dir() {
            let mut found = Found::default();
            walk::parquet_files(path, &mut found).map_err(unreadable)?;
            if found.files.is_empty() {
                return Err(nothing_in(path, found.left_out));
            }
            files.append(&mut found.files);
        } else {
            reject_streams_and_urls(path)?;
            files.push(path.clone());
        }
    }
    Ok(files)
}

/// The files that match a pattern, and the files in directories that match; each file once.
fn matching(pattern: &Path) -> Result<Vec<PathBuf>, Error> {
    let matches = globs::matching(pattern).map_err(|error| unreadable((pattern.to_owned(), error)))?;
    if matches.is_empty() {
        let advice = "check the pattern; it skips names that start with _ or . unless it starts so itself";
        return Err(Error::failure("no files match", pattern.display().to_string(), advice));
    }
    let mut found = Found::default();
    for path in matches {
        match path.is_dir() {
            true => walk::parquet_files(&path, &mut found).map_err(unreadable)?,
            false => found.files.push(path),
        }
    }
    if found.files.is_empty() {
        return Err(nothing_in(pattern, found.left_out));
    }
    found.files.sort();
    found.files.dedup();
    Ok(found.files)
}

fn unreadable((directory, error): (PathBuf, io::Error)) -> Error {
    let place = directory.display().to_string();
    Error::failure(format!("reading the directory failed: {error}"), place, "check its permissions")
}

fn nothing_in(path: &Path, left_out: usize) -> Error {
    let place = path.display().to_string();
    match left_out {
        0 => Error::failure(
            "no .parquet files",
            place,
            "name the files themselves if they have another extension",
        ),
        _ => {
            let what =
                format!("no .parquet files, except below {left_out} skipped names that start with _ or .");
            Error::failure(what, place, "name the file or the directory itself to include it")
        }
    }
}

/// Rejects standard input and URLs, unless a file has that name.
fn reject_streams_and_urls(path: &Path) -> Result<(), Error> {
    let Some(text) = path.to_str().filter(|_| path.symlink_metadata().is_err()) else { return Ok(()) };
    if text == "-" {
        let advice = "the footer is at the end of a file: write the stream to a file first";
        return Err(Error::usage("expected files, found standard input", "-", advice));
    }
    match text.split_once("://") {
        Some((scheme, _)) if !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric()) => {
            let what = format!("files cannot be read from {scheme}://");
            Err(Error::usage(what, text, "copy the file to this machine and give its path"))
        }
        _ => Ok(()),
    }
}
