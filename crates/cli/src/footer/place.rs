//! Where the Parquet files are that the command shows: paths, objects, or standard input.

use std::fmt;
use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use sawmill_source::FileBytes;
use sawmill_store::{Location, ObjectUrl};

use crate::arguments::paths::standard_input::{STANDARD_INPUT, spool};
use crate::arguments::paths::{self, Located, Wanted};
use crate::arguments::stores::{Objects, PlaceBytes, StoreArgs};
use crate::error::{Error, Result};

/// Where a Parquet file is. `Display` shows what the user calls it.
#[derive(Clone)]
pub(crate) enum Place {
    Path(PathBuf),
    Object(ObjectUrl),
    /// Standard input itself if it is a file, otherwise a temporary file with its bytes.
    StandardInput(FileBytes),
}

/// Files, and the stores of the objects among them.
pub(crate) struct Places {
    pub places: Vec<Place>,
    pub objects: Objects,
}

impl Places {
    /// What `arguments` name: files, directories, patterns and URLs, or `-` alone for standard input.
    ///
    /// # Errors
    ///
    /// There are none; standard input is named beside others, or cannot be read.
    pub(crate) fn new(arguments: &[PathBuf], stores: &StoreArgs) -> Result<Self> {
        let is_standard_input = |path: &PathBuf| path == Path::new("-");
        match arguments {
            [only] if is_standard_input(only) => {
                let objects = Objects::new(stores, None)?;
                Ok(Places { places: vec![Place::standard_input()?], objects })
            }
            _ if arguments.iter().any(is_standard_input) => {
                let what = "expected - for standard input alone, found other files beside it";
                Err(Error::usage(what, "-", "give - alone, or write the stream to a file and name that"))
            }
            _ => {
                let Located { places, objects } = paths::located(arguments, Wanted::Parquet, stores)?;
                Ok(Places { places: places.into_iter().map(Place::from).collect(), objects })
            }
        }
    }
}

impl Place {
    /// What one argument names: a path, a URL, or `-` for standard input.
    ///
    /// # Errors
    ///
    /// No store takes the URL; standard input cannot be read.
    pub(crate) fn new(argument: &Path) -> Result<Self> {
        if argument == Path::new("-") { Self::standard_input() } else { Ok(Location::new(argument)?.into()) }
    }

    fn standard_input() -> Result<Self> {
        let file = match redirected() {
            Some(file) => file,
            None => spool()?.into_file(),
        };
        let bytes = FileBytes::of_file(file).map_err(|error| {
            Error::failure(format!("reading failed: {error}"), STANDARD_INPUT, "name the file instead")
        })?;
        Ok(Self::StandardInput(bytes))
    }

    /// Its name as a path: the file's name, the URL, or `standard input`.
    pub(crate) fn name(&self) -> PathBuf {
        match self {
            Self::Path(path) => path.clone(),
            other => PathBuf::from(other.to_string()),
        }
    }

    /// Opens it for reading.
    ///
    /// # Errors
    ///
    /// It does not exist or cannot be read.
    pub(crate) fn open(&self, objects: &Objects) -> Result<PlaceBytes> {
        match self {
            Self::Path(path) => PlaceBytes::open(&Location::Path(path.clone()), objects),
            Self::Object(url) => PlaceBytes::open(&Location::Object(url.clone()), objects),
            Self::StandardInput(bytes) => Ok(PlaceBytes::new(bytes.clone(), STANDARD_INPUT)),
        }
    }
}

impl From<Location> for Place {
    fn from(location: Location) -> Self {
        match location {
            Location::Path(path) => Self::Path(path),
            Location::Object(url) => Self::Object(url),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Object(url) => url.fmt(f),
            Self::StandardInput(_) => f.write_str(STANDARD_INPUT),
        }
    }
}

/// Standard input if it is an unread file (`< file`), which need not be copied.
fn redirected() -> Option<File> {
    let mut file = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    let is_whole = file.metadata().ok()?.is_file() && file.stream_position().ok()? == 0;
    is_whole.then_some(file)
}
