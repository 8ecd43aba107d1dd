//! The bytes of the file or object that the user named.

use std::sync::Arc;

use sawmill_footer::{Footer, Options};
use sawmill_source::FileBytes;
use sawmill_store::{Fault, Location, open_input};

use super::Objects;
use crate::error::{Error, Result};
use crate::interrupt;

/// How many last bytes of an object to read to open it.
pub(crate) const TAIL: u64 = 64 << 10;

/// The bytes of a file or an object, open for reading, and the first error of its store.
pub(crate) struct PlaceBytes {
    pub bytes: FileBytes,
    name: String,
    fault: Fault,
}

impl PlaceBytes {
    /// Opens a file or an object.
    ///
    /// # Errors
    ///
    /// It does not exist or cannot be read.
    pub(crate) fn open(place: &Location, objects: &Objects) -> Result<Self> {
        let fault = Fault::default();
        let bytes = match place {
            Location::Path(path) => {
                let advice = "check the name and the permissions";
                let opened = open_input(path).and_then(FileBytes::of_file);
                opened.map_err(|error| {
                    Error::failure(format!("opening failed: {error}"), place.to_string(), advice)
                })?
            }
            Location::Object(url) => FileBytes::of_object(objects.open(url, TAIL)?.with_fault(fault.clone())),
        };
        Ok(Self { fault, ..Self::new(bytes, &place.to_string()) })
    }

    /// The bytes of an open file called `name`.
    pub(crate) fn new(bytes: FileBytes, name: &str) -> Self {
        let bytes = bytes.stopped_by(Some(Arc::clone(interrupt::flag())));
        Self { bytes, name: name.to_owned(), fault: Fault::default() }
    }

    /// Reads the footer.
    ///
    /// # Errors
    ///
    /// The bytes cannot be read, or are not a Parquet file.
    pub(crate) fn footer(&self, options: &Options) -> Result<Footer> {
        Footer::read(&self.bytes, &self.name, options).map_err(|error| self.because(error.into()))
    }

    /// Prefers a signal that ended the work, and the store's error, if there is one: both say more than the error of the
    /// decoder above them.
    pub(crate) fn because(&self, error: Error) -> Error {
        if interrupt::asked() {
            return interrupt::error();
        }
        self.fault.get().cloned().map_or(error, Error::from)
    }
}
