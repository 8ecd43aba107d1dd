//! A folder of a store that takes its objects together: a mark is beside them until all of them are there.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::Error;
use crate::found_files::UNFINISHED as MARK;
use crate::partial::unique;
use crate::remote::listing;
use crate::remote::writing::folder::ObjectFolder;
use crate::remote::writing::put::{Mark, taken};
use crate::remote::writing::writer::ObjectWriter;

/// A folder of a store that takes its objects together. The run whose mark is there may write to it.
pub struct WholeFolder {
    folder: ObjectFolder,
    is_marked: bool,
    there: Vec<String>,
}

/// An object that this run has sent.
#[derive(Clone, Debug)]
pub struct Sent {
    name: String,
    tag: Option<String>,
    mark: Mark,
}

impl WholeFolder {
    /// Reads the mark of the folder that `open` returns, and lists its objects. `open(true)` is the folder whose objects
    /// may be replaced.
    pub(in crate::remote) fn open(
        overwrite: bool,
        open: impl Fn(bool) -> Result<ObjectFolder, Error>,
    ) -> Result<Self, Error> {
        let mut folder = open(overwrite)?;
        let is_marked = folder.read(MARK)?.is_some();
        if is_marked && !overwrite {
            folder = open(true)?;
            folder.read(MARK)?;
        }
        let there = listed(&folder)?.into_keys().collect();
        Ok(Self { folder, is_marked, there })
    }

    /// Whether a run that was killed or failed, or that is under way, has left its mark.
    pub fn is_marked(&self) -> bool {
        self.is_marked
    }

    /// Returns the names of the objects that were there when the folder was opened, without the mark.
    pub fn there(&self) -> &[String] {
        &self.there
    }

    /// Marks the folder as this run's, and aborts the unfinished uploads of objects that `is_ours` accepts.
    ///
    /// # Errors
    ///
    /// Another run has marked it since it was opened ([`Kind::Exists`](crate::Kind::Exists)); the store refuses or
    /// cannot be reached.
    pub fn begin(&self, is_ours: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        self.folder.replace(MARK, unique().as_bytes())?;
        // Not every store lists them, and not to everyone.
        let Ok(Some(found)) = self.folder.unfinished() else { return Ok(()) };
        found.iter().filter(|upload| is_ours(&upload.name)).try_for_each(|upload| self.folder.abort(upload))
    }

    /// Begins an object.
    ///
    /// # Errors
    ///
    /// The name is not valid.
    pub fn create(&self, name: &str) -> Result<ObjectWriter, Error> {
        self.folder.create(name)
    }

    /// Completes an object: it is in the store when this returns.
    ///
    /// # Errors
    ///
    /// As [`ObjectWriter::finish`].
    pub fn finish(&self, name: &str, object: ObjectWriter) -> Result<Sent, Error> {
        let mark = object.mark().clone();
        Ok(Sent { name: name.to_owned(), tag: object.finish()?, mark })
    }

    /// Makes sure that the folder has the objects that this run has sent. Returns the names of the other ones that
    /// `is_ours` accepts, which earlier runs have left.
    ///
    /// # Errors
    ///
    /// Another run has marked the folder or written one of the objects ([`Kind::Exists`](crate::Kind::Exists)); the store
    /// refuses or cannot be reached.
    pub fn others(&self, sent: &[Sent], is_ours: &dyn Fn(&str) -> bool) -> Result<Vec<String>, Error> {
        if !self.folder.is_as_seen(MARK)? {
            return Err(taken(&self.folder.url(MARK)));
        }
        let mut there = listed(&self.folder)?;
        for Sent { name, tag, mark } in sent {
            let is_listed = there.remove(name).flatten().is_some_and(|listed| Some(listed) == *tag);
            // A list may lag behind, and some stores write tags in several forms.
            if !is_listed && !self.folder.has_mark(name, mark)? {
                return Err(taken(&self.folder.url(name)));
            }
        }
        Ok(there.into_keys().filter(|name| is_ours(name)).collect())
    }

    /// Removes an object.
    ///
    /// # Errors
    ///
    /// The store refuses or cannot be reached.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        self.folder.remove(name)
    }

    /// Removes the mark.
    ///
    /// # Errors
    ///
    /// Another run has marked the folder ([`Kind::Exists`](crate::Kind::Exists)); the store refuses or cannot be
    /// reached.
    pub fn end(&self) -> Result<(), Error> {
        // The write is conditional, unlike the removal: if it succeeds, no run has begun since ours.
        self.folder.replace(MARK, b"complete")?;
        self.folder.remove(MARK)
    }
}

/// The names and the entity tags of all objects below a folder, without its mark.
fn listed(folder: &ObjectFolder) -> Result<BTreeMap<String, Option<String>>, Error> {
    let all = listing::list(folder.client(), &folder.url(""))?;
    let named = all.into_iter().filter_map(|object| {
        let name = folder.name_of_key(object.url().key())?;
        (name != MARK).then(|| (name, object.version().tag().map(str::to_owned)))
    });
    Ok(named.collect())
}

impl fmt::Debug for WholeFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WholeFolder")
            .field("folder", &self.folder)
            .field("is_marked", &self.is_marked)
            .finish()
    }
}
