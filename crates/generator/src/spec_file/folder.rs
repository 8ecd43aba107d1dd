//! The folder with the files that a spec names: lists of words, specs of other datasets.
//!
//! Every file read from it enters the checksum of the spec, because the rows depend on it too.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

/// The folder of a spec; for a spec without a file, the working directory.
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

    /// The path of the file `name`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.map_or_else(|| PathBuf::from(name), |directory| directory.join(name))
    }

    /// Reads the file `name`.
    pub(crate) fn read(&self, name: &str) -> io::Result<String> {
        let text = std::fs::read_to_string(self.path(name))?;
        let mut sum = self.sum.borrow_mut();
        sum.update(&(text.len() as u64).to_le_bytes());
        sum.update(text.as_bytes());
        Ok(text)
    }

    /// The XXH3-128 of the spec and of all files read for it, each after its length.
    pub(crate) fn sum(&self) -> u128 {
        self.sum.borrow().digest128()
    }
}
