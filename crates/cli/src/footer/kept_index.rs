//! Saved indexes of footers: files, or objects beside those that they index.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sawmill_footer::{Footer, FooterIndex};
use sawmill_store::{Kind, Location, ObjectUrl, WholeFile, is_stream};
use tempfile::NamedTempFile;

use crate::arguments::paths;
use crate::arguments::stores::{Objects, StoreArgs};
use crate::error::Error;
use crate::footer::escaped_place;

/// Where an index is, or will be.
#[derive(Debug)]
pub(crate) struct KeptIndex {
    /// The file; of an object, a copy.
    path: PathBuf,
    object: Option<(ObjectUrl, Objects)>,
    _copy: Option<NamedTempFile>,
}

impl KeptIndex {
    /// The place of an index that is to be saved. It must be free, or that of an older index.
    ///
    /// # Errors
    ///
    /// Something else is there; a store cannot be reached.
    pub(crate) fn to_save(path: &Path, stores: &StoreArgs, cancel: &Arc<AtomicBool>) -> Result<Self, Error> {
        let other = |place: &Location| {
            let what = "expected an older index or no file at the index's path, found another file";
            Err(Error::usage(what, escaped_place(place), "give the index another name"))
        };
        let place = Location::of(path)?;
        match &place {
            Location::Path(path) => {
                let is_index = || matches!(FooterIndex::is_kept_in(path), Ok(true));
                match path.exists() && !is_stream(path) && !is_index() {
                    true => other(&place),
                    false => Ok(Self::file(path)),
                }
            }
            Location::Object(url) => {
                let objects = paths::stores_of([&path.to_owned()], stores, cancel)?;
                match copied(url, &objects) {
                    Ok(copy) if !matches!(FooterIndex::is_kept_in(copy.path()), Ok(true)) => other(&place),
                    Ok(_) => Ok(Self { object: Some((url.clone(), objects)), ..Self::file(path) }),
                    Err(Refused::Store(error)) if error.kind() == Kind::NotFound => {
                        Ok(Self { object: Some((url.clone(), objects)), ..Self::file(path) })
                    }
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// An index that is to be read; of an object, a copy.
    ///
    /// # Errors
    ///
    /// The object cannot be read.
    pub(crate) fn to_read(path: &Path, stores: &StoreArgs, cancel: &Arc<AtomicBool>) -> Result<Self, Error> {
        match Location::of(path)? {
            Location::Path(path) => Ok(Self::file(&path)),
            Location::Object(url) => {
                let objects = paths::stores_of([&path.to_owned()], stores, cancel)?;
                let copy = copied(&url, &objects)?;
                Ok(Self { path: copy.path().to_owned(), object: None, _copy: Some(copy) })
            }
        }
    }

    fn file(path: &Path) -> Self {
        Self { path: path.to_owned(), object: None, _copy: None }
    }

    /// The file to read.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Saves the index of a footer here, whole or not at all.
    ///
    /// # Errors
    ///
    /// Only a part of the footer was decoded; the file or the object cannot be written.
    pub(crate) fn save(&self, footer: &Footer) -> Result<(), Error> {
        let bytes = footer.index_bytes()?;
        let failed = |error: std::io::Error, place: String| {
            Error::failure(format!("writing the index failed: {error}"), place, "")
        };
        let Some((url, objects)) = &self.object else {
            let place = || self.path.display().to_string();
            return WholeFile::write(&self.path, &bytes).map_err(|error| failed(error, place()));
        };
        let mut object = objects.create(url, true, 0)?;
        object.write_all(&bytes).map_err(|error| failed(error, url.to_string()))?;
        Ok(object.finish()?)
    }
}

/// The reason why an object has no copy.
enum Refused {
    Store(sawmill_store::Error),
    Other(Error),
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Store(error) => error.into(),
            Refused::Other(error) => error,
        }
    }
}

fn copied(url: &ObjectUrl, objects: &Objects) -> Result<NamedTempFile, Refused> {
    let failed = |error: std::io::Error| {
        let what = format!("storing a copy of the index failed: {error}");
        Refused::Other(Error::failure(what, url.to_string(), "free some space, or set TMPDIR"))
    };
    let mut copy = NamedTempFile::with_prefix("sawmill-").map_err(failed)?;
    objects.copy(url, &mut copy).map_err(Refused::Store)?;
    copy.flush().map_err(failed)?;
    Ok(copy)
}
