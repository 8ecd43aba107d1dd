//! A folder of a store, which takes its objects when all of them are complete on this machine.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use sawmill_profile::Pool;
use sawmill_store::{Kind, ObjectUrl, Sent, UploadLimits, WholeFolder};

use super::ConvertArgs;
use super::staging::{Layout, files_below};
use crate::arguments::paths::stores_of;
use crate::arguments::stores::Objects;
use crate::error::Error;

/// Objects that are sent or removed at the same time.
const SENDERS: usize = 16;

/// Bytes that are read and sent at once.
const PIECE: usize = 1 << 20;

/// A folder of a store, and what a run writes into it.
pub(super) struct StoreFolder {
    folder: WholeFolder,
    layout: Layout,
    shown: String,
    /// They have to live as long as the folder.
    _objects: Objects,
}

impl StoreFolder {
    /// Lists the folder. Objects in it are an error unless an unfinished run left them or the user allows replacing
    /// them. Objects with names that `layout` does not use are always an error.
    pub(super) fn open(args: &ConvertArgs, url: &ObjectUrl, layout: Layout) -> Result<Self, Error> {
        let objects = stores_of(&args.out, &args.objects.stores)?;
        let shown = url.sibling(url.key().trim_matches('/')).to_string();
        let folder = objects.stores()?.whole_folder(url, UploadLimits::default(), args.overwrite)?;
        if let Some(other) = folder.there().iter().find(|name| !layout.has(name)) {
            let what = format!("the folder has other objects than {}, such as {other:?}", layout.files());
            return Err(Error::usage(what, shown, "give another name"));
        }
        if !folder.there().is_empty() && !folder.is_marked() && !args.overwrite {
            let advice = "--overwrite replaces them";
            return Err(Error::usage("the folder has objects already", shown, advice));
        }
        Ok(Self { folder, layout, shown, _objects: objects })
    }

    /// Sends all files below `directory`, and removes the objects of earlier runs that are not among them.
    pub(super) fn fill(&self, directory: &Path) -> Result<(), Error> {
        let files = files_below(directory)?;
        let is_ours = |name: &str| self.layout.has(name);
        self.folder.begin(&is_ours).map_err(|error| self.contested(error))?;
        // Each small object takes as long as the way to the store.
        let pool = Pool::new("object", SENDERS, None);
        let sent = pool.map(&files, |(name, path)| self.send(name, path))?;
        let others = self.folder.others(&sent, &is_ours).map_err(|error| self.contested(error))?;
        pool.map(others, |name| self.folder.remove(&name).map_err(Error::from))?;
        self.folder.end().map_err(|error| self.contested(error))
    }

    /// The error of a run that found the mark or an object of another one.
    fn contested(&self, error: sawmill_store::Error) -> Error {
        if error.kind() != Kind::Exists {
            return error.into();
        }
        let advice = "wait until it is done, then use --overwrite, or give another name";
        Error::failure("another conversion writes to this folder", &self.shown, advice)
    }

    fn send(&self, name: &str, path: &Path) -> Result<Sent, Error> {
        let wrong = |error: std::io::Error| Error::of_output("reading", path, &error);
        let mut file = File::open(path).map_err(wrong)?;
        let mut left = file.metadata().map_err(wrong)?.len();
        let mut object = self.folder.create(name)?;
        let mut piece = vec![0; PIECE];
        loop {
            let read = file.read(&mut piece).map_err(wrong)?;
            if read == 0 {
                break;
            }
            left = left.saturating_sub(read as u64);
            object.write(&[piece.get(..read).unwrap_or_default()], left)?;
        }
        Ok(self.folder.finish(name, object)?)
    }
}
