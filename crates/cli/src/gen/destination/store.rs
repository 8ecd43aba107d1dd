//! Folders of stores as the place of generated files.

use std::sync::Arc;

use sawmill_generator::{Folder, StoreFolder, StoreOutput, UnfinishedRun};
use sawmill_store::{ObjectUrl, StoreOptions, Stores, Unfinished, UploadLimits};

use crate::arguments::stores::StoreArgs;
use crate::error::{Error, Result};
use crate::r#gen::clean::{CleanArgs, Cleaned, UnfinishedFile};
use crate::r#gen::destination::{UploadArgs, single_object};
use crate::interrupt;

/// The output at a URL: a folder, or the single object `file`.
pub(super) fn output(
    url: &ObjectUrl,
    file: Option<(ObjectUrl, String)>,
    args: &UploadArgs,
    replaces: bool,
) -> Result<StoreOutput> {
    let limits = UploadLimits {
        part: usize::try_from(args.upload_part).unwrap_or(usize::MAX),
        requests: args.uploads.into(),
    };
    let (url, file) = file.map_or_else(|| (url.clone(), None), |(folder, name)| (folder, Some(name)));
    // The files of an earlier run are removed first, so that only a single file replaces another.
    let replaces = replaces && file.is_some();
    let folder = StoreFolder::open(&stores(&args.stores)?, &url, limits, replaces)?;
    Ok(StoreOutput { folder: Arc::new(folder), file })
}

/// Checks options that no URL uses.
pub(super) fn refuse_options(args: &StoreArgs) -> Result<()> {
    Ok(StoreOptions::parse(&args.store).map(|_| ())?)
}

fn stores(args: &StoreArgs) -> Result<Arc<Stores>> {
    Ok(Arc::new(Stores::new(StoreOptions::parse(&args.store)?, Arc::clone(interrupt::flag()))?))
}

/// Aborts the uploads that killed runs left in a folder, or of a single object.
pub(in crate::r#gen) fn clean(url: &ObjectUrl, args: &CleanArgs) -> Result<Cleaned> {
    let single = single_object(url);
    let (folder_url, file) = match &single {
        Some((folder, name)) => (folder, Some(name.as_str())),
        None => (url, None),
    };
    let folder = StoreFolder::open(&stores(&args.stores)?, folder_url, UploadLimits::default(), false)?;
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
        None => is_dataset_file(upload.name.rsplit('/').next().unwrap_or(&upload.name)),
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
