//! The folder of a spec, where the files stand that it names: lists of words, specs of other datasets.
//!
//! What is read from it is summed, since it decides about the rows as the spec's own text does.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

/// A folder, or none for a spec that is in no file: then names are those of the working directory.
pub(crate) struct SpecFolder<'a> {
    directory: Option<&'a Path>,
    sum: RefCell<Xxh3>,
}

impl<'a> SpecFolder<'a> {
    /// The folder of the spec in `text`.
    pub(crate) fn new(directory: Option<&'a Path>, text: &str) -> Self {
        let mut sum = Xxh3::new();
        sum.update(text.as_bytes());
        Self { directory, sum: RefCell::new(sum) }
    }

    /// Where a file of this name stands.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.map_or_else(|| PathBuf::from(name), |directory| directory.join(name))
    }

    /// The text of a file.
    pub(crate) fn read(&self, name: &str) -> io::Result<String> {
        let text = std::fs::read_to_string(self.path(name))?;
        let mut sum = self.sum.borrow_mut();
        sum.update(&(text.len() as u64).to_le_bytes());
        sum.update(text.as_bytes());
        Ok(text)
    }

    /// The XXH3-128 of the spec and of all that was read for it, each behind its length.
    pub(crate) fn sum(&self) -> u128 {
        self.sum.borrow().digest128()
    }
}
