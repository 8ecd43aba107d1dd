//! A folder of a store, which takes its objects when all of them are complete on this machine.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use sawmill_profile::Pool;
use sawmill_store::{Kind, ObjectFolder, ObjectUrl, UploadLimits};

use super::ConvertArgs;
use super::staging::{Layout, files_below};
use crate::arguments::paths::stores_of;
use crate::arguments::stores::Objects;
use crate::error::Error;
use crate::r#gen::formats::failed;

/// The object that is beside the others until all of them are there. Readers skip names that start with `_`.
const UNFINISHED: &str = "_unfinished_by_sawmill_convert";

/// Objects that are sent or removed at the same time.
const SENDERS: usize = 16;

/// Bytes that are read and sent at once.
const PIECE: usize = 1 << 20;

/// A folder of a store, and the objects already in it.
pub(super) struct StoreFolder {
    folder: ObjectFolder,
    /// The objects that are replaced or removed, relative to the folder.
    there: Vec<String>,
    /// Whether a run that was killed or failed has left the mark.
    marked: bool,
    /// They have to live as long as the folder.
    _objects: Objects,
}

impl StoreFolder {
    /// Lists the folder. Objects in it are an error unless an unfinished run left them or the user allows replacing
    /// them. Objects with names that `layout` does not use are always an error.
    pub(super) fn open(args: &ConvertArgs, url: &ObjectUrl, layout: Layout) -> Result<Self, Error> {
        let objects = stores_of(&args.out, &args.objects.stores)?;
        let url = url.sibling(url.key().trim_matches('/'));
        let prefix = if url.key().is_empty() { String::new() } else { format!("{}/", url.key()) };
        let listed = objects.stores()?.list(&url)?;
        let keys = listed.iter().filter_map(|object| object.url().key().strip_prefix(&prefix));
        let mut there: Vec<String> = keys.map(str::to_owned).collect();
        let marked = there.iter().any(|name| name == UNFINISHED);
        there.retain(|name| name != UNFINISHED);
        let shown = url.to_string();
        if let Some(other) = there.iter().find(|name| !layout.has(name)) {
            let what = format!("the folder has other objects than {}, such as {other:?}", layout.files());
            return Err(Error::usage(what, shown, "give another name"));
        }
        if !there.is_empty() && !marked && !args.overwrite {
            let advice = "--overwrite replaces them";
            return Err(Error::usage("the folder has objects already", shown, advice));
        }
        let replaces = marked || args.overwrite;
        let folder = objects.stores()?.folder(&url, UploadLimits::default(), replaces)?;
        Ok(Self { folder, there, marked, _objects: objects })
    }

    /// Sends all files below `directory`, and removes the objects that are not among them.
    pub(super) fn fill(&self, directory: &Path) -> Result<(), Error> {
        let files = files_below(directory)?;
        if !self.marked {
            match self.folder.create_small(UNFINISHED, b"") {
                Err(error) if error.kind() == Kind::Exists => {
                    let advice = "wait until it is done, then use --overwrite, or give another name";
                    let what = "another conversion has begun to write to this folder";
                    return Err(Error::failure(what, self.folder.url("").to_string(), advice));
                }
                made => made?,
            }
        }
        // Each small object takes as long as the way to the store.
        let pool = Pool::new("object", SENDERS, None);
        pool.map(&files, |(name, path)| self.send(name, path))?;
        let sent: HashSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        let others = self.there.iter().filter(|name| !sent.contains(name.as_str()));
        pool.map(others, |name| self.folder.remove(name).map_err(Error::from))?;
        Ok(self.folder.remove(UNFINISHED)?)
    }

    fn send(&self, name: &str, path: &Path) -> Result<(), Error> {
        let wrong = |error: std::io::Error| failed("reading", path, &error);
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
        object.finish()?;
        Ok(())
    }
}
