//! Folders of stores: objects are sent while they are written, and appear when they are complete.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sawmill_store::{Entry, ObjectFolder, ObjectUrl, ObjectWriter, Stores, Unfinished, UploadLimits};

use crate::error::{Error, Result};
use crate::output::checksum::PieceSum;
use crate::output::existing::last_of;
use crate::output::folder::{FileBytes, Folder, MadeFile};
use crate::output::sink::{Sink, Upload};

/// A folder of a store as a [`Folder`].
#[derive(Debug)]
pub struct StoreFolder {
    folder: ObjectFolder,
    /// Objects as they were last listed.
    listed: Mutex<HashMap<String, Entry>>,
    /// The folder needs their threads.
    _stores: Arc<Stores>,
}

impl StoreFolder {
    /// The folder at a URL. Objects replace others of their name only if `replaces` is set.
    ///
    /// # Errors
    /// A web server; the name or the store's settings are not valid.
    pub fn open(
        stores: &Arc<Stores>,
        url: &ObjectUrl,
        limits: UploadLimits,
        replaces: bool,
    ) -> Result<Self, sawmill_store::Error> {
        let folder = stores.folder(url, limits, replaces)?;
        Ok(Self { folder, listed: Mutex::default(), _stores: Arc::clone(stores) })
    }

    /// The unfinished uploads of files in the folder and the folders directly below; `None` if the store
    /// cannot list them.
    ///
    /// # Errors
    /// The store refuses or cannot be reached.
    pub fn unfinished(&self) -> Result<Option<Vec<Unfinished>>, sawmill_store::Error> {
        let mut found = self.folder.unfinished()?;
        if let Some(found) = &mut found {
            found.retain(|upload| match upload.name.split_once('/') {
                None => true,
                Some((below, name)) => below.contains('=') && !name.contains('/'),
            });
        }
        Ok(found)
    }

    /// Aborts an upload; its parts are removed.
    ///
    /// # Errors
    /// The store refuses or cannot be reached.
    pub fn abort(&self, upload: &Unfinished) -> Result<(), sawmill_store::Error> {
        self.folder.abort(upload)
    }

    fn listed(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        // A panic cannot leave it half-changed.
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an object has these bytes. Its entity tag tells; without one, or with another, its bytes do.
    fn has(
        &self,
        entry: Option<&Entry>,
        file: &FileBytes<'_>,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<bool> {
        let Some(entry) = entry.filter(|entry| entry.bytes == file.bytes) else { return Ok(false) };
        if entry.tag.is_some() && entry.tag.as_deref() == file.tag {
            return Ok(true);
        }
        let mut sum = PieceSum::default();
        self.folder.read_pieces(file.name, &mut |piece| {
            check()?;
            sum.update(piece);
            Ok::<(), Error>(())
        })?;
        Ok(sum.sum() == file.sum)
    }
}

impl Folder for StoreFolder {
    fn place(&self, name: &str) -> PathBuf {
        PathBuf::from(self.folder.url(name).to_string())
    }

    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn files(&self, below: &str) -> Result<Vec<String>> {
        let (entries, _) = self.folder.list(below)?;
        let names = entries.iter().map(|entry| entry.name.clone()).collect();
        self.listed().extend(entries.into_iter().map(|entry| (entry.name.clone(), entry)));
        Ok(names)
    }

    fn folders(&self) -> Result<Vec<String>> {
        Ok(self.folder.list("")?.1)
    }

    fn exists(&self, name: &str) -> Result<bool> {
        Ok(self.folder.entry(name)?.is_some())
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.folder.read(name)?)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        Ok(self.folder.replace(name, bytes)?)
    }

    fn create(&self, name: &str) -> Result<Sink> {
        let writer = self.folder.create(name)?;
        Ok(Sink::upload(self.place(name), Box::new(Sending(writer))))
    }

    fn remove(&self, name: &str) -> Result<()> {
        Ok(self.folder.remove(name)?)
    }

    fn remove_leftovers(&self, below: &str, is_ours: &dyn Fn(&str) -> bool) -> Result<()> {
        // A list has the uploads of all folders, even of those that have no object yet.
        if !below.is_empty() {
            return Ok(());
        }
        // Not every store lists them, and not to everyone. They do no harm here; `gen clean` reports the
        // error.
        let Ok(Some(found)) = self.unfinished() else { return Ok(()) };
        for upload in found.iter().filter(|upload| is_ours(last_of(&upload.name))) {
            self.folder.abort(upload)?;
        }
        Ok(())
    }

    fn holds(&self, file: &FileBytes<'_>, check: &dyn Fn() -> Result<()>) -> Result<bool> {
        let listed = self.listed().get(file.name).cloned();
        let entry = match listed {
            Some(entry) => Some(entry),
            None => self.folder.entry(file.name)?,
        };
        self.has(entry.as_ref(), file, check)
    }

    fn replaced(&self, made: &[MadeFile]) -> Result<Option<PathBuf>> {
        let folders: BTreeSet<&str> =
            made.iter().map(|file| file.name.rsplit_once('/').map_or("", |(below, _)| below)).collect();
        self.listed().clear();
        for below in folders {
            self.files(below)?;
        }
        for file in made {
            let listed = self.listed().get(&file.name).filter(|entry| entry.tag == file.tag).cloned();
            // A list may lag behind.
            let entry = match listed {
                Some(entry) => Some(entry),
                None => self.folder.entry(&file.name)?,
            };
            let wanted = FileBytes {
                name: &file.name,
                bytes: file.bytes,
                sum: file.sum.unwrap_or_default(),
                tag: file.tag.as_deref(),
            };
            if !self.has(entry.as_ref(), &wanted, &|| Ok(()))? {
                return Ok(Some(self.place(&file.name)));
            }
        }
        Ok(None)
    }

    fn lacks_locks(&self) -> bool {
        true
    }
}

/// An object that is being written.
#[derive(Debug)]
struct Sending(ObjectWriter);

impl Upload for Sending {
    fn write(&mut self, pieces: &[&[u8]], more: u64) -> Result<()> {
        Ok(self.0.write(pieces, more)?)
    }

    fn finish(self: Box<Self>) -> Result<Option<String>> {
        Ok(self.0.finish()?)
    }
}
