//! Writes a dataset: threads make row groups and append them to files.
//!
//! Threads take row groups in file order, from as many files at a time as there are writers, and make each
//! one in memory. A row group is appended after the previous ones of its file, so a thread that is early
//! waits. Threads take row groups in order, so it waits for at most one row group of each other thread, and at
//! most `threads` row groups are in memory.
//!
//! This file decides what a run makes, keeps and replaces; `dataset/run.rs` makes it.

mod job;
mod run;

use std::sync::atomic::Ordering::Relaxed;

use crate::error::{Error, Result};
use crate::output::checksum::Checksum;
use crate::output::dataset_files::DatasetFiles;
use crate::output::destination::Output;
use crate::output::existing::{self, Directory, Existing, Settled};
use crate::output::folder::Folder;
use crate::output::lock::{OutputLock, Patience};
use crate::output::manifest::Manifest;
use crate::output::process;
use crate::spec::dataset::Dataset;
use crate::write::plan::FilePlan;
pub use job::{Job, Notices, WrittenFile};
use run::Run;

/// Writes `dataset`. When this returns, the files are complete. After an error, finished files remain and
/// unfinished files are removed. A directory gets a manifest. A run locks its files. If another run holds the
/// lock, the job waits if it may keep or replace files; otherwise it fails.
///
/// # Errors
/// The layout or the options do not fit the dataset or the output, files of an earlier run exist, another run
/// is writing the same files, a file cannot be written, or the job is cancelled.
pub fn write(dataset: &Dataset, job: &Job<'_>) -> Result<Vec<WrittenFile>> {
    let files = job.part.files(job.layout.files);
    refuse_several_in_one(dataset, job, files.len())?;
    let plan = FilePlan::new(&job.options, dataset, job.partition_by.as_deref())?;
    let folder = job.output.folder();
    let folder = folder.as_deref();
    let place = folder.map(|folder| folder.place("")).unwrap_or_default();
    let directory = folder.filter(|_| !job.output.is_single()).map(|folder| Directory {
        folder,
        files: DatasetFiles {
            directory: &place,
            name: dataset.name(),
            extension: "parquet",
            part: job.part,
            files: files.clone(),
        },
        layout: job.layout,
        partition_by: job.partition_by.as_deref(),
    });
    folder.map_or(Ok(()), Folder::prepare)?;
    let notice = |text: &str| job.notices.0.iter().for_each(|show| show(text));
    let patience = Patience { waits: job.existing != Existing::Refuse, notice: &notice, cancel: job.cancel };
    let _locked = lock_output(dataset, job, &patience)?;
    let (mut manifest, settled) = settle(dataset, job, folder, directory.as_ref(), &patience)?;
    manifest.set_files(settled.kept.clone(), false);
    let missing: Vec<u32> =
        files.clone().filter(|file| !settled.kept.iter().any(|kept| kept.file == *file)).collect();
    let manifest = directory.as_ref().map(|directory| (manifest, directory.folder, directory.manifest()));
    let run = Run::new(&plan, job, folder, manifest);
    let made = run.announce(&settled).and_then(|()| run.make_files(missing));
    let written = run.written_files(settled.kept);
    made.map_err(|error| error.leaving_files(!written.is_empty()))?;
    Ok(written)
}

/// Refuses several files or folders for a single output.
fn refuse_several_in_one(dataset: &Dataset, job: &Job<'_>, files: usize) -> Result<()> {
    if !job.output.is_single() || (files == 1 && job.partition_by.is_none()) {
        return Ok(());
    }
    let what = match &job.partition_by {
        Some(column) => format!("a folder for each {column} does not fit into one file"),
        None if files == 0 => format!("a single file is made as a whole: part {} has none", job.part),
        None => format!("{files} files do not fit into one"),
    };
    let place = job.output.place(dataset.name(), 0).display().to_string();
    Err(Error::spec(what, place, "write to a directory, or make one file"))
}

/// Decides about the files of earlier runs, once other runs have completed theirs. Returns the
/// manifest of this run, and the decision.
fn settle(
    dataset: &Dataset,
    job: &Job<'_>,
    folder: Option<&dyn Folder>,
    directory: Option<&Directory<'_>>,
    patience: &Patience<'_>,
) -> Result<(Manifest, Settled)> {
    let identity = (dataset.name(), Checksum(dataset.spec_hash()));
    let partition_by = job.partition_by.as_deref();
    let mut manifest = Manifest::new(identity, job.seed, job.layout, job.part, partition_by, &job.options);
    if let (Some(folder), None) = (folder, directory) {
        existing::settle_file(folder, &job.output.file_name(dataset.name(), 0), job.earlier_files())?;
    }
    if let Some(directory) = directory.filter(|directory| directory.folder.lacks_locks()) {
        directory.wait_for_others(patience)?;
    }
    let check = || if job.cancel.load(Relaxed) { Err(Error::cancelled()) } else { Ok(()) };
    let settled = match directory {
        Some(directory) => directory.settle(job.earlier_files(), &manifest, &check)?,
        None => Settled::default(),
    };
    settled.notice.iter().for_each(|notice| (patience.notice)(notice));
    // The rows are the same, so the earlier run's content sum is valid. It comes from the manifest that decided:
    // reading the file again would hide that another run has replaced it.
    manifest.content_sum = job.content_sum.or(settled.content_sum);
    if folder.is_some_and(Folder::lacks_locks) {
        manifest.run = Some(process::this_run());
    }
    Ok((manifest, settled))
}

/// Locks the files of the job. Streams are not locked.
fn lock_output(dataset: &Dataset, job: &Job<'_>, patience: &Patience<'_>) -> Result<Option<OutputLock>> {
    match job.output {
        Output::Directory(path) => {
            OutputLock::of_directory(path, dataset.name(), job.part, patience).map(Some)
        }
        Output::File(path) => OutputLock::of_file(path, patience).map(Some),
        Output::Store(_) | Output::Device(_) | Output::Stdout => Ok(None),
    }
}
