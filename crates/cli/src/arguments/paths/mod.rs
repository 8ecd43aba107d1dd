//! Finds the files and objects that the paths and URLs of a command line name: files, directories, patterns
//! and lists.

pub(crate) mod file_lists;
pub(crate) mod output;
pub(crate) mod standard_input;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sawmill_generator::{is_manifest, unfinished_dataset};
use sawmill_store::directories::directory_of;
use sawmill_store::found_files::{self, Found, FoundKeys};
use sawmill_store::{Location, ObjectUrl, followed, is_stream, open_regular};

use crate::arguments::delta::{self, DeltaTable};
use crate::arguments::stores::{Objects, StoreArgs};
use crate::arguments::text::has_text_extension;
use crate::error::{Error, Result};

/// Which files of a directory to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Parquet files.
    Parquet,
    /// Parquet files; if there are none, delimited text.
    ParquetOrText,
}

impl Wanted {
    /// The wanted files among those found.
    fn files(self, found: Found) -> Vec<PathBuf> {
        match self {
            Self::ParquetOrText if found.files.is_empty() => found.others,
            _ => found.files,
        }
    }

    /// The wanted objects among those found. Objects below a folder are wanted by their extension.
    pub(crate) fn among<'a>(self, found: FoundKeys<'a>) -> Vec<&'a str> {
        match self {
            Self::ParquetOrText if found.files.is_empty() => {
                found.others.into_iter().filter(|key| has_text_extension(Path::new(key))).collect()
            }
            _ => found.files,
        }
    }

    /// Whether a key is the name of an object rather than the start of several names.
    pub(crate) fn is_object(self, key: &str) -> bool {
        found_files::is_parquet(key) || (self == Self::ParquetOrText && has_text_extension(Path::new(key)))
    }
}

/// Files and objects, and the stores of the objects.
pub(crate) struct Located {
    pub places: Vec<Location>,
    pub objects: Objects,
}

/// The files and objects that `paths` name. A directory names the wanted files below it, a pattern its matches,
/// and a prefix of a store the objects below it, each in the order of their names. A list names the files on its
/// lines, and a version of a Delta table the files that it lists.
///
/// Directories and patterns skip names that start with `_` or `.`.
pub(crate) fn located(paths: &[PathBuf], wanted: Wanted, stores: &StoreArgs) -> Result<Located> {
    if let Some(table) = delta::only(paths)? {
        let DeltaTable { files, objects, .. } = delta::open(&table, stores)?;
        return Ok(Located { places: files.into_iter().map(|file| file.place).collect(), objects });
    }
    let named = locations(paths)?;
    let objects = Objects::new(stores, named.iter().find_map(url))?;
    let mut places = Vec::with_capacity(named.len());
    for place in named {
        match place {
            Location::Path(path) => {
                places.extend(local_files(&path, wanted)?.into_iter().map(Location::Path))
            }
            Location::Object(url) => {
                places.extend(objects.named(&url, wanted)?.into_iter().map(Location::Object));
            }
        }
    }
    if let Some(confinement) = stores.confinement()? {
        places.iter().try_for_each(|place| confinement.check(place))?;
    }
    Ok(Located { places, objects })
}

/// Refuses one file for two options: the later output would replace the other, or an input. Inputs may be repeated.
pub(crate) fn each_has_its_file<'a>(
    named: impl IntoIterator<Item = (&'a str, Option<&'a PathBuf>)>,
) -> Result<()> {
    let mut taken: Vec<(&str, PathBuf)> = Vec::new();
    for (option, path) in named.into_iter().filter_map(|(option, path)| Some((option, path?))) {
        let mut whole = followed(path).and_then(std::path::absolute).unwrap_or_else(|_| path.clone());
        if let (Ok(folder), Some(name)) = (directory_of(&whole).canonicalize(), whole.file_name()) {
            whole = folder.join(name);
        }
        let other = taken.iter().find(|(other, file)| *file == whole && *other != option);
        if let Some((other, _)) = other.filter(|_| !is_stream(path)) {
            let what = format!("{other} and {option} name the same file");
            return Err(Error::usage(what, path.display().to_string(), "give each a file of its own"));
        }
        taken.push((option, whole));
    }
    Ok(())
}

/// The stores of the URLs among some paths.
pub(crate) fn stores_of<'a>(
    paths: impl IntoIterator<Item = &'a PathBuf>,
    stores: &StoreArgs,
) -> Result<Objects> {
    let named = paths.into_iter().map(|path| Location::new(path)).collect::<Result<Vec<_>, _>>()?;
    Objects::new(stores, named.iter().find_map(url))
}

/// The Parquet files below a directory of this machine.
pub(crate) fn parquet_files(directory: &Path) -> Result<Vec<PathBuf>> {
    local_files(directory, Wanted::Parquet)
}

fn locations(paths: &[PathBuf]) -> Result<Vec<Location>> {
    Ok(file_lists::expanded(paths)?.iter().map(|path| Location::new(path)).collect::<Result<_, _>>()?)
}

fn url(place: &Location) -> Option<&ObjectUrl> {
    match place {
        Location::Path(_) => None,
        Location::Object(url) => Some(url),
    }
}

/// The files that a path names: itself, those below it, or those that match it and those in directories that match;
/// each file once.
fn local_files(path: &Path, wanted: Wanted) -> Result<Vec<PathBuf>> {
    let shown = path.display().to_string();
    // A file may have the name of a pattern.
    let is_pattern = found_files::is_pattern(path) && path.symlink_metadata().is_err();
    let named = match is_pattern {
        true => found_files::matching(path).map_err(|error| unreadable((path.to_owned(), error)))?,
        false => vec![path.to_owned()],
    };
    if named.is_empty() {
        let advice = "check the pattern; it skips names that start with _ or . unless it starts so itself";
        return Err(Error::failure("no files match", shown, advice));
    }
    if !is_pattern && path.is_dir() && wanted == Wanted::ParquetOrText {
        let has = |below: &str| path.join(below).is_dir();
        let is_iceberg = has("data") && is_iceberg_metadata(&path.join("metadata"));
        refuse_table(&shown, has("_delta_log"), is_iceberg)?;
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| is_manifest(&entry.file_name().to_string_lossy())) {
            // A run may just have replaced it.
            let mut manifest = Vec::new();
            let _ = open_regular(&entry.path()).and_then(|mut file| file.read_to_end(&mut manifest));
            refuse_unfinished(&shown, &manifest)?;
        }
    }
    if path.as_os_str() == "-" && path.symlink_metadata().is_err() {
        let advice = "the footer is at the end of a file: write the stream to a file first";
        return Err(Error::usage("expected files, found standard input", "-", advice));
    }
    let mut found = Found::default();
    for path in named {
        match path.is_dir() {
            true => found_files::parquet_files(&path, has_text_extension, &mut found).map_err(unreadable)?,
            false => found.files.push(path),
        }
    }
    let left_out = found.left_out;
    let mut files = wanted.files(found);
    if files.is_empty() {
        return Err(nothing_in(&shown, left_out));
    }
    if is_pattern {
        files.sort();
        files.dedup();
    }
    Ok(files)
}

/// Whether a directory holds the metadata of an Iceberg table.
fn is_iceberg_metadata(directory: &Path) -> bool {
    let names = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.into_iter().any(|name| name.to_string_lossy().ends_with(ICEBERG))
}

/// The end of the names of an Iceberg table's metadata files.
pub(crate) const ICEBERG: &str = ".metadata.json";

/// Refuses to take all files of a folder that a table format manages: some of them may be deleted from the
/// table, or not committed.
pub(crate) fn refuse_table(place: &str, is_delta: bool, is_iceberg: bool) -> Result<()> {
    let kind = match (is_delta, is_iceberg) {
        (true, _) => "a Delta table",
        (_, true) => "an Iceberg table",
        _ => return Ok(()),
    };
    let what = format!("the folder is {kind}, whose metadata says which of the files belong to it");
    let advice = if is_delta {
        "write delta:FOLDER for the files of its newest version, or a pattern such as FOLDER/*.parquet \
             for all files"
    } else {
        "name these files, or give a pattern such as FOLDER/*.parquet to take all files"
    };
    Err(Error::failure(what, place, advice))
}

/// Refuses to take the files of a folder whose manifest says that some are missing.
pub(crate) fn refuse_unfinished(place: &str, manifest: &[u8]) -> Result<()> {
    let Some(dataset) = unfinished_dataset(manifest) else { return Ok(()) };
    let what = format!("the folder is unfinished: gen of {dataset} was interrupted, or is under way");
    let advice = "wait until it is done, or run the same gen with --resume; a pattern such as FOLDER/*.parquet \
                  takes the files that are there";
    Err(Error::failure(what, place, advice))
}

fn unreadable((directory, error): (PathBuf, io::Error)) -> Error {
    let place = directory.display().to_string();
    Error::failure(format!("reading the directory failed: {error}"), place, "check its permissions")
}

/// The error for a directory, or for objects below a prefix, without any Parquet file that is not skipped.
pub(crate) fn nothing_in(place: &str, left_out: usize) -> Error {
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
