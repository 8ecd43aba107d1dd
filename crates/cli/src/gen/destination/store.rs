//! Folders of stores as the place of generated files.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sawmill_generator::{
    Error as GeneratorError, FileBytes, Folder, MadeFile, PieceSum, Sink, StoreOutput, UnfinishedRun, Upload,
};
use sawmill_store::{
    Entry, ObjectFolder, ObjectUrl, ObjectWriter, StoreOptions, Stores, Unfinished, UploadLimits,
};

use crate::arguments::stores::StoreArgs;
use crate::error::Error;
use crate::r#gen::clean::{CleanArgs, Cleaned, UnfinishedFile};
use crate::r#gen::destination::{UploadArgs, single_object};

/// A folder of a store.
#[derive(Debug)]
pub(in crate::r#gen) struct StoreFolder {
    folder: ObjectFolder,
    /// Objects as they were last listed.
    listed: Mutex<HashMap<String, Entry>>,
    /// The folder needs their threads.
    _stores: Stores,
}

/// The output at a URL: a folder, or the single object `file`.
pub(super) fn output(
    url: &ObjectUrl,
    file: Option<(ObjectUrl, String)>,
    args: &UploadArgs,
    replaces: bool,
    cancel: &Arc<AtomicBool>,
) -> Result<StoreOutput, Error> {
    let limits = UploadLimits {
        part: usize::try_from(args.upload_part).unwrap_or(usize::MAX),
        requests: args.uploads.into(),
    };
    let (url, file) = match file {
        Some((folder, name)) => (folder, Some(name)),
        None => (url.clone(), None),
    };
    // The files of an earlier run are removed first, so that only a single file replaces another.
    let replaces = replaces && file.is_some();
    let folder = StoreFolder::open(&url, &args.stores, limits, replaces, cancel)?;
    Ok(StoreOutput { folder: Arc::new(folder), file })
}

/// Checks options that no URL uses.
pub(super) fn refuse_options(args: &StoreArgs) -> Result<(), Error> {
    Ok(StoreOptions::parse(&args.store).map(|_| ())?)
}

impl StoreFolder {
    pub(in crate::r#gen) fn open(
        url: &ObjectUrl,
        args: &StoreArgs,
        limits: UploadLimits,
        replaces: bool,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let stores = Stores::new(StoreOptions::parse(&args.store)?, Arc::clone(cancel))?;
        let folder = stores.folder(url, limits, replaces)?;
        Ok(Self { folder, listed: Mutex::default(), _stores: stores })
    }

    /// The unfinished uploads of files in the folder and the folders directly below; `None` if the store
    /// cannot list them.
    pub(in crate::r#gen) fn unfinished(&self) -> Result<Option<Vec<Unfinished>>, sawmill_store::Error> {
        let mut found = self.folder.unfinished()?;
        if let Some(found) = &mut found {
            found.retain(|upload| match upload.name.split_once('/') {
                None => true,
                Some((below, name)) => below.contains('=') && !name.contains('/'),
            });
        }
        Ok(found)
    }

    pub(in crate::r#gen) fn abort(&self, upload: &Unfinished) -> Result<(), sawmill_store::Error> {
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
        check: &dyn Fn() -> Result<(), GeneratorError>,
    ) -> Result<bool, GeneratorError> {
        let Some(entry) = entry.filter(|entry| entry.bytes == file.bytes) else { return Ok(false) };
        if entry.tag.is_some() && entry.tag.as_deref() == file.tag {
            return Ok(true);
        }
        let mut sum = PieceSum::default();
        self.folder.read_pieces(file.name, &mut |piece| {
            check()?;
            sum.update(piece);
            Ok::<(), GeneratorError>(())
        })?;
        Ok(sum.sum() == file.sum)
    }
}

impl Folder for StoreFolder {
    fn place(&self, name: &str) -> PathBuf {
        PathBuf::from(self.folder.url(name).to_string())
    }

    fn prepare(&self) -> Result<(), GeneratorError> {
        Ok(())
    }

    fn files(&self, below: &str) -> Result<Vec<String>, GeneratorError> {
        let (entries, _) = self.folder.list(below)?;
        let names = entries.iter().map(|entry| entry.name.clone()).collect();
        self.listed().extend(entries.into_iter().map(|entry| (entry.name.clone(), entry)));
        Ok(names)
    }

    fn folders(&self) -> Result<Vec<String>, GeneratorError> {
        Ok(self.folder.list("")?.1)
    }

    fn exists(&self, name: &str) -> Result<bool, GeneratorError> {
        Ok(self.folder.entry(name)?.is_some())
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, GeneratorError> {
        Ok(self.folder.read(name)?)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), GeneratorError> {
        Ok(self.folder.replace(name, bytes)?)
    }

    fn create(&self, name: &str) -> Result<Sink, GeneratorError> {
        let writer = self.folder.create(name)?;
        Ok(Sink::upload(self.place(name), Box::new(Sending(writer))))
    }

    fn remove(&self, name: &str) -> Result<(), GeneratorError> {
        Ok(self.folder.remove(name)?)
    }

    fn remove_leftovers(&self, below: &str, is_ours: &dyn Fn(&str) -> bool) -> Result<(), GeneratorError> {
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

    fn holds(
        &self,
        file: &FileBytes<'_>,
        check: &dyn Fn() -> Result<(), GeneratorError>,
    ) -> Result<bool, GeneratorError> {
        let listed = self.listed().get(file.name).cloned();
        let entry = match listed {
            Some(entry) => Some(entry),
            None => self.folder.entry(file.name)?,
        };
        self.has(entry.as_ref(), file, check)
    }

    fn replaced(&self, made: &[MadeFile]) -> Result<Option<PathBuf>, GeneratorError> {
        let folders: BTreeSet<&str> =
            made.iter().map(|file| file.name.rsplit_once('/').map_or("", |(below, _)| below)).collect();
        self.listed().clear();
        for below in folders {
            self.files(below)?;
        }
        for file in made {
            let entry = self.listed().get(&file.name).cloned();
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

/// Aborts the uploads that killed runs left in a folder, or of a single object.
pub(in crate::r#gen) fn clean(
    url: &ObjectUrl,
    args: &CleanArgs,
    cancel: &Arc<AtomicBool>,
) -> Result<Cleaned, Error> {
    let single = single_object(url);
    let (folder_url, file) = match &single {
        Some((folder, name)) => (folder, Some(name.as_str())),
        None => (url, None),
    };
    let folder = StoreFolder::open(folder_url, &args.stores, UploadLimits::default(), false, cancel)?;
    let runs = if file.is_some() { Vec::new() } else { UnfinishedRun::find(&folder)? };
    if let Some(run) = runs.iter().find(|run| run.is_alive.unwrap_or(!args.force)) {
        let (what, advice) = match run.is_alive {
            Some(_) => (format!("{} is writing {} here", run.process, run.dataset), "wait until it ends"),
            None => (
                format!("{} may be writing {} here", run.process, run.dataset),
                "make sure that it has ended, then pass --force",
            ),
        };
        return Err(Error::failure(what, url.to_string(), advice));
    }
    let Some(found) = folder.unfinished()? else {
        let what = "this store does not list unfinished uploads";
        let advice = "Azure removes them after a week; for others, set a rule of the bucket that aborts them";
        return Err(Error::failure(what, url.to_string(), advice));
    };
    let ours = |upload: &&Unfinished| match file {
        Some(file) => upload.name == file,
        None => is_dataset_file(last_of(&upload.name)),
    };
    let mut cleaned = Cleaned::default();
    for upload in found.iter().filter(ours) {
        if !args.dry_run {
            folder.abort(upload)?;
        }
        let begun = Some(upload.begun.clone()).filter(|begun| !begun.is_empty());
        cleaned.unfinished.push(UnfinishedFile { path: folder.place(&upload.name), begun });
    }
    for run in &runs {
        if !args.dry_run {
            run.end(&folder)?;
        }
        cleaned.runs.push(run.process.clone());
    }
    Ok(cleaned)
}

/// Whether it is the name of a file of a dataset: `NAME-00000.parquet`.
fn is_dataset_file(name: &str) -> bool {
    let number =
        name.strip_suffix(".parquet").and_then(|name| name.rsplit_once('-')).map(|(_, number)| number);
    number.is_some_and(|number| number.len() >= 5 && number.bytes().all(|b| b.is_ascii_digit()))
}

/// An object that is being written.
#[derive(Debug)]
struct Sending(ObjectWriter);

impl Upload for Sending {
    fn write(&mut self, pieces: &[&[u8]], more: u64) -> Result<(), GeneratorError> {
        Ok(self.0.write(pieces, more)?)
    }

    fn finish(self: Box<Self>) -> Result<Option<String>, GeneratorError> {
        Ok(self.0.finish()?)
    }
}

/// The name of a file without its folder.
pub(in crate::r#gen) fn last_of(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
