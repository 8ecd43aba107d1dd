//! Writes a dataset: threads make row groups and append them to files.
//!
//! Threads take row groups in file order, from as many files at a time as there are writers, and make each
//! one in memory. A row group is appended after the previous ones of its file, so a thread that is early
//! waits. Threads take row groups in order, so it waits for at most one row group of each other thread. At
//! most
//! `threads` row groups are in memory.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sawmill_profile::{Phase, WaitKind, span, wait};
use serde::Serialize;

use crate::error::Error;
use crate::layout::file_options::FileOptions;
use crate::layout::rows::{Layout, Part, PlannedGroup, PlannedGroups};
use crate::output::checksum::Checksum;
use crate::output::dataset_files::DatasetFiles;
use crate::output::destination::Output;
use crate::output::existing::{self, Directory, EarlierFiles, Existing, Settled};
use crate::output::folder::{Folder, MadeFile};
use crate::output::lock::{OutputLock, Patience};
use crate::output::manifest::{Manifest, ManifestFile};
use crate::output::process;
use crate::output::sink::{Finished, Sink};
use crate::spec::dataset::Dataset;
use crate::write::file_metadata::FileEnd;
use crate::write::partition::{MadeGroup, PlannedGroupMaker};
use crate::write::plan::FilePlan;
use sawmill_store::directories::Unsynced;

/// How often the manifest of a directory is updated while files are made.
const MANIFEST_EVERY: Duration = Duration::from_secs(2);

/// The parameters for writing a dataset. [`Job::new`] sets defaults.
#[derive(Debug)]
pub struct Job<'a> {
    /// The layout of the rows.
    pub layout: &'a Layout,
    /// The destination of the files.
    pub output: &'a Output,
    /// How to write the files.
    pub options: FileOptions,
    /// The seed. The same seed produces the same bytes.
    pub seed: u64,
    /// The number of threads that make row groups.
    pub threads: NonZeroUsize,
    /// The number of files to write at the same time. The default is the number of threads.
    pub writers: Option<NonZeroUsize>,
    /// The part of the files to make.
    pub part: Part,
    /// The partition column, a top-level field. Each of its values has a folder `COLUMN=VALUE` with the files
    /// of its rows, without the column.
    pub partition_by: Option<String>,
    /// What to do with the files of an earlier run in the same directory, or with an existing single file.
    pub existing: Existing,
    /// The files that the dataset was inferred from. They are never replaced or removed.
    pub sources: Vec<PathBuf>,
    /// The content sum of the rows of all files, for the manifest, if known.
    pub content_sum: Option<Checksum>,
    /// Counts rows and bytes as row groups are written.
    pub phase: &'a Phase,
    /// Counts the rows of complete files that are kept.
    pub kept_rows: Option<&'a AtomicU64>,
    /// Receives a line when the job waits for another run to end.
    pub notices: Notices<'a>,
    /// When it becomes true, the job ends soon and removes unfinished files.
    pub cancel: &'a AtomicBool,
}

/// Receives lines that a person should read immediately. By default, they are dropped.
#[derive(Clone, Copy, Default)]
pub struct Notices<'a>(pub Option<&'a (dyn Fn(&str) + Sync)>);

impl std::fmt::Debug for Notices<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Notices").field(&self.0.is_some()).finish()
    }
}

impl<'a> Job<'a> {
    /// Writes all files of `layout` with default options and seed 42, on one thread.
    pub fn new(layout: &'a Layout, output: &'a Output, phase: &'a Phase, cancel: &'a AtomicBool) -> Self {
        Job {
            layout,
            output,
            options: FileOptions::default(),
            seed: 42,
            threads: NonZeroUsize::MIN,
            writers: None,
            part: Part::WHOLE,
            partition_by: None,
            existing: Existing::default(),
            sources: Vec::new(),
            content_sum: None,
            phase,
            kept_rows: None,
            notices: Notices::default(),
            cancel,
        }
    }

    fn earlier_files(&self) -> EarlierFiles<'_> {
        EarlierFiles { existing: self.existing, sources: &self.sources, kept_rows: self.kept_rows }
    }
}

/// A file that was written.
#[derive(Clone, Debug, Serialize)]
pub struct WrittenFile {
    /// Its path.
    pub path: PathBuf,
    /// Its number in the layout. With partitions, several files have the same number.
    pub file: u32,
    /// Its rows.
    pub rows: u64,
    /// Its row groups.
    pub row_groups: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The XXH3-128 of its bytes; `None` for devices.
    #[serde(rename = "file_checksum")]
    pub sum: Option<Checksum>,
    /// Whether an earlier run wrote it.
    pub kept: bool,
}

/// Writes `dataset`. When this returns, the files are complete. After an error, finished files remain and
/// unfinished files are removed. A directory gets a manifest. A run locks its files. If another run holds the
/// lock, the job waits if it may keep or replace files; otherwise it fails.
///
/// # Errors
/// The layout or the options do not fit the dataset or the output, files of an earlier run exist, another run
/// is writing the same files, a file cannot be written, or the job is cancelled.
pub fn write(dataset: &Dataset, job: &Job<'_>) -> Result<Vec<WrittenFile>, Error> {
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
    let _locked = lock_output(dataset, job)?;
    let (mut manifest, settled) = settle(dataset, job, folder, directory.as_ref())?;
    manifest.set_files(settled.kept.clone(), false);
    let missing: Vec<u32> =
        files.clone().filter(|file| !settled.kept.iter().any(|kept| kept.file == *file)).collect();
    let run = Run {
        plan: &plan,
        job,
        folder,
        planned: Mutex::new(
            job.layout.planned_groups(missing.clone(), job.writers.unwrap_or(job.threads).get()),
        ),
        first_file: files.start,
        files: files.map(|file| FileState::planned(job.layout.row_groups(file))).collect(),
        manifest: directory.as_ref().map(|directory| {
            let (folder, name) = (directory.folder, directory.manifest());
            Mutex::new(KeptManifest { manifest, folder, name, written: Instant::now() })
        }),
        made: Mutex::default(),
        failure: Mutex::new(None),
        stop: AtomicBool::new(false),
    };
    if let Some(kept) = &run.manifest {
        let kept = lock(kept);
        kept.manifest.write(kept.folder, &kept.name)?;
        settled.make_room(kept.folder)?;
    }
    run.make_files(missing)?;
    Ok(run.written_files(settled.kept))
}

/// Several files or folders do not fit into a single output.
fn refuse_several_in_one(dataset: &Dataset, job: &Job<'_>, files: usize) -> Result<(), Error> {
    if !job.output.is_single() || (files == 1 && job.partition_by.is_none()) {
        return Ok(());
    }
    let what = match &job.partition_by {
        Some(column) => format!("a folder for each {column} does not fit into one file"),
        None => format!("{files} files do not fit into one"),
    };
    let place = job.output.place(dataset.name(), 0).display().to_string();
    Err(Error::spec(what, place, "write to a directory, or make one file"))
}

/// Decides what to do with the files of earlier runs, once those of other runs are complete. Returns the
/// manifest of this run, and the decision.
fn settle(
    dataset: &Dataset,
    job: &Job<'_>,
    folder: Option<&dyn Folder>,
    directory: Option<&Directory<'_>>,
) -> Result<(Manifest, Settled), Error> {
    let identity = (dataset.name(), Checksum(dataset.spec_hash()));
    let partition_by = job.partition_by.as_deref();
    let mut manifest = Manifest::new(identity, job.seed, job.layout, job.part, partition_by, &job.options);
    if let (Some(folder), None) = (folder, directory) {
        existing::settle_file(folder, &job.output.file_name(dataset.name(), 0), job.earlier_files())?;
    }
    if let Some(directory) = directory.filter(|directory| directory.folder.lacks_locks()) {
        directory.wait_for_others(&patience(job, &notice(job)))?;
    }
    let check = || if job.cancel.load(Relaxed) { Err(Error::cancelled()) } else { Ok(()) };
    let settled = match directory {
        Some(directory) => directory.settle(job.earlier_files(), &manifest, &check)?,
        None => Settled::default(),
    };
    if let (Some(notice), Some(show)) = (&settled.notice, job.notices.0) {
        show(notice);
    }
    manifest.content_sum = job.content_sum;
    if let (None, Existing::Resume | Existing::Finish, Some(directory)) =
        (job.content_sum, job.existing, directory)
    {
        // The rows are the same, so the content sum of the earlier run is valid.
        let earlier = Manifest::read(directory.folder, &directory.manifest())?;
        manifest.content_sum = earlier.and_then(|then| then.content_sum);
    }
    if folder.is_some_and(Folder::lacks_locks) {
        manifest.run = Some(process::this_run());
    }
    Ok((manifest, settled))
}

/// Locks the files of the job. Streams are not locked.
fn lock_output(dataset: &Dataset, job: &Job<'_>) -> Result<Option<OutputLock>, Error> {
    let notice = notice(job);
    let patience = patience(job, &notice);
    match job.output {
        Output::Directory(path) => {
            OutputLock::of_directory(path, dataset.name(), job.part, &patience).map(Some)
        }
        Output::File(path) => OutputLock::of_file(path, &patience).map(Some),
        Output::Store(_) | Output::Device(_) | Output::Stdout => Ok(None),
    }
}

fn notice<'a>(job: &Job<'a>) -> impl Fn(&str) + use<'a> {
    let notices = job.notices;
    move |text| {
        if let Some(show) = notices.0 {
            show(text);
        }
    }
}

fn patience<'a>(job: &Job<'a>, notice: &'a dyn Fn(&str)) -> Patience<'a> {
    Patience { waits: job.existing != Existing::Refuse, notice, cancel: job.cancel }
}

/// The state of one file of the layout.
#[derive(Debug, Default)]
struct FileState {
    /// The planned number of row groups.
    row_groups: usize,
    /// The number of finished planned groups.
    appended: usize,
    /// The open file, or one in each folder.
    open: BTreeMap<String, OpenFile>,
    done: Vec<WrittenFile>,
}

impl FileState {
    /// The state of a file before its first row group, and what threads that wait for their turn wait on.
    fn planned(row_groups: u64) -> (Mutex<Self>, Condvar) {
        (Mutex::new(FileState { row_groups: row_groups as usize, ..FileState::default() }), Condvar::new())
    }
}

#[derive(Debug)]
struct OpenFile {
    /// Its name in the folder.
    name: String,
    sink: Sink,
    end: FileEnd,
}

#[derive(Debug)]
struct KeptManifest<'a> {
    manifest: Manifest,
    folder: &'a dyn Folder,
    /// Its name in the folder.
    name: String,
    written: Instant,
}

/// The files that this run has finished and renamed.
#[derive(Debug, Default)]
struct MadeFiles {
    files: Vec<MadeFile>,
    unsynced: Unsynced,
}

struct Run<'a> {
    plan: &'a FilePlan<'a>,
    job: &'a Job<'a>,
    /// `None` for streams.
    folder: Option<&'a dyn Folder>,
    planned: Mutex<PlannedGroups<'a>>,
    /// The number of the first of `files`.
    first_file: u32,
    files: Vec<(Mutex<FileState>, Condvar)>,
    manifest: Option<Mutex<KeptManifest<'a>>>,
    made: Mutex<MadeFiles>,
    failure: Mutex<Option<Error>>,
    stop: AtomicBool,
}

/// Stops the other threads when this one panics, because they would wait for its row group forever.
struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Relaxed);
        }
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Run<'_> {
    fn state(&self, file: u32) -> &(Mutex<FileState>, Condvar) {
        &self.files[(file - self.first_file) as usize]
    }

    /// Makes the `missing` files and writes the manifest. After a failure the manifest lists the files that
    /// are complete.
    fn make_files(&self, missing: Vec<u32>) -> Result<(), Error> {
        // Files without rows have no row group that would create them.
        for file in missing {
            if self.job.layout.row_groups(file) == 0 {
                self.finish_file(file, &mut lock(&self.state(file).0))?;
            }
        }
        self.on_threads();
        let failure = lock(&self.failure).take();
        let failure = failure.or_else(|| self.check_names().err());
        let saved = self.sync_names().and_then(|()| self.save_manifest(failure.is_none(), true));
        failure.map_or(saved, Err)
    }

    /// The files that were made and those that were kept, in the order of the layout.
    fn written_files(&self, kept: Vec<ManifestFile>) -> Vec<WrittenFile> {
        let mut written: Vec<WrittenFile> =
            self.files.iter().flat_map(|(state, _)| std::mem::take(&mut lock(state).done)).collect();
        written.extend(kept.into_iter().map(|file| WrittenFile {
            path: self.folder.map(|folder| folder.place(&file.name)).unwrap_or_default(),
            file: file.file,
            rows: file.rows,
            row_groups: file.row_groups,
            bytes: file.bytes,
            sum: Some(file.sum),
            kept: true,
        }));
        written.sort_by(|a, b| (a.file, &a.path).cmp(&(b.file, &b.path)));
        written
    }

    /// Makes all row groups, on the job's threads.
    fn on_threads(&self) {
        std::thread::scope(|scope| {
            for worker in 0..self.job.threads.get() {
                let name = format!("generate-{worker}");
                let spawned = std::thread::Builder::new().name(name.clone()).spawn_scoped(scope, move || {
                    let _attached = self.job.phase.attach(&name);
                    self.work();
                });
                if let Err(error) = spawned {
                    // Fewer threads do the same work, but one is required.
                    if worker == 0 {
                        self.fail(Error::spec(
                            error.to_string(),
                            "starting a thread",
                            "raise the limit on threads",
                        ));
                    }
                    break;
                }
            }
        });
    }

    /// Makes row groups until none are left.
    fn work(&self) {
        let _others_stop = StopOnPanic(&self.stop);
        let mut maker = match PlannedGroupMaker::new(self.plan, self.job.seed) {
            Ok(maker) => maker,
            Err(error) => return self.fail(error),
        };
        loop {
            let Some(group) = lock(&self.planned).next() else { return };
            if let Err(error) = self.make(&group, &mut maker) {
                self.fail(error);
                return;
            }
        }
    }

    /// Makes and appends the row group, or several if it ends early at its bytes.
    fn make(&self, planned: &PlannedGroup, maker: &mut PlannedGroupMaker<'_>) -> Result<(), Error> {
        let layout = self.job.layout;
        let mut rows = planned.rows.clone();
        while !rows.is_empty() {
            let bytes = layout.row_group_bytes;
            let end = maker.make(rows.clone(), layout.page_rows, bytes, &|| self.check())?;
            self.append(planned, rows.start..end, maker.groups())?;
            rows.start = end;
        }
        Ok(())
    }

    fn fail(&self, error: Error) {
        lock(&self.failure).get_or_insert(error);
        self.stop.store(true, Relaxed);
    }

    fn check(&self) -> Result<(), Error> {
        if self.job.cancel.load(Relaxed) || self.stop.load(Relaxed) {
            return Err(Error::cancelled());
        }
        Ok(())
    }

    /// Waits for the turn of the planned group, then appends the row groups of `rows` to their files. The
    /// turn ends with the last row of the planned group.
    fn append(&self, planned: &PlannedGroup, rows: Range<u64>, groups: &[MadeGroup]) -> Result<(), Error> {
        let file = planned.file as u32;
        let (state, turn) = self.state(file);
        let mut state = lock(state);
        if state.appended != planned.row_group {
            let _waiting = wait(WaitKind::Lock);
            while state.appended != planned.row_group {
                self.check()?;
                let waited = turn.wait_timeout(state, Duration::from_millis(50));
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        self.check()?;
        let writing = span("write");
        let mut bytes = 0;
        for group in groups.iter().filter(|group| group.rows > 0) {
            bytes += self.append_group(planned.file as u32, &rows, group, &mut state)?;
        }
        writing.add_bytes(bytes);
        self.job.phase.add_rows(rows.end - rows.start);
        self.job.phase.add_bytes(bytes);
        if rows.end < planned.rows.end {
            return Ok(());
        }
        state.appended += 1;
        if state.appended == state.row_groups {
            self.finish_file(file, &mut state)?;
        }
        turn.notify_all();
        Ok(())
    }

    fn append_group(
        &self,
        file: u32,
        rows: &Range<u64>,
        group: &MadeGroup,
        state: &mut FileState,
    ) -> Result<u64, Error> {
        if !state.open.contains_key(&group.folder) {
            state.open.insert(group.folder.clone(), self.create(file, &group.folder)?);
        }
        // It was inserted above if it was missing.
        let Some(open) = state.open.get_mut(&group.folder) else { return Ok(0) };
        let before = open.sink.written();
        let mut pieces: Vec<&[u8]> = Vec::new();
        for chunk in &group.chunks {
            pieces.extend(chunk.pieces());
        }
        pieces.extend(group.chunks.iter().map(|chunk| chunk.bloom.as_slice()));
        // Assuming rows as large as in this row group.
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let rows_left = self.job.layout.file_rows(file).end - rows.end;
        let more = bytes as u128 * u128::from(rows_left) / u128::from((rows.end - rows.start).max(1));
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        open.sink.write(&pieces, more)?;
        if !group.folder.is_empty() {
            // There may be more folders than a process may have open files.
            open.sink.park();
        }
        open.end.add_row_group(self.plan, &group.chunks, group.rows, before);
        Ok(open.sink.written() - before)
    }

    fn create(&self, file: u32, folder: &str) -> Result<OpenFile, Error> {
        let name = self.job.output.file_name(self.plan.dataset.name(), file);
        let name = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        let sink = match self.folder {
            Some(folder) => Some(folder.create(&name)?),
            None => self.job.output.open_stream()?,
        };
        // An output has a folder or is a stream.
        let Some(mut sink) = sink else { return Err(Error::cancelled()) };
        sink.write(&[b"PAR1"], 0)?;
        Ok(OpenFile { name, sink, end: FileEnd::default() })
    }

    /// Writes the end of a file and renames it to its final name.
    fn finish_file(&self, file: u32, state: &mut FileState) -> Result<(), Error> {
        if state.open.is_empty() && self.plan.partition.is_none() {
            state.open.insert(String::new(), self.create(file, "")?);
        }
        let _finishing = span("finish file");
        let mut listed = Vec::new();
        for (_, OpenFile { name, mut sink, end }) in std::mem::take(&mut state.open) {
            let (rows, row_groups) = (end.rows(), end.row_groups() as u64);
            let before = sink.written();
            let pieces = end.finish(self.plan, before);
            sink.write(&pieces.each_ref().map(Vec::as_slice), 0)?;
            self.job.phase.add_bytes(sink.written() - before + 4);
            let finished = sink.finish()?;
            let Finished { path, bytes, sum, identity, tag } = finished;
            if let (Some(_), Some(sum)) = (&self.manifest, sum) {
                let (name, tag) = (name.clone(), tag.clone());
                listed.push(ManifestFile { name, file, rows, row_groups, bytes, sum, tag });
            }
            if self.folder.is_some() {
                let mut made = lock(&self.made);
                if identity.is_some() {
                    made.unsynced.named(&path);
                }
                made.files.push(MadeFile { name, bytes, sum, identity, tag });
            }
            state.done.push(WrittenFile { path, file, rows, row_groups, bytes, sum, kept: false });
        }
        if let Some(kept) = &self.manifest {
            // The files of all folders together: a manifest with only some would look complete.
            lock(kept).manifest.files.append(&mut listed);
        }
        self.save_manifest(false, false)
    }

    /// Checks that this run's file names still belong to its files. Another program may have written into the
    /// directory, or another run, on a file system without locks.
    fn check_names(&self) -> Result<(), Error> {
        let made = lock(&self.made);
        match self.folder.map_or(Ok(None), |folder| folder.replaced(&made.files))? {
            None => Ok(()),
            Some(path) => Err(Error::spec(
                "the file was replaced or removed while other files were written",
                path.display().to_string(),
                "make sure that no other program writes here, then run the same command with --overwrite",
            )),
        }
    }

    /// Syncs the directories of the finished files, so their names are on disk.
    fn sync_names(&self) -> Result<(), Error> {
        let synced = lock(&self.made).unsynced.sync();
        synced.map_err(|(e, directory)| Error::io(&e, "syncing the directory", &directory, None))
    }

    /// Writes the manifest if it is due or the last one. The files that it names, and their names, are
    /// already on disk.
    fn save_manifest(&self, complete: bool, last: bool) -> Result<(), Error> {
        let Some(kept) = &self.manifest else { return Ok(()) };
        let mut kept = lock(kept);
        if !last && kept.written.elapsed() < MANIFEST_EVERY {
            return Ok(());
        }
        if last && !complete && kept.manifest.files.is_empty() {
            // No file was finished, so the manifest would be empty.
            return kept.folder.remove(&kept.name);
        }
        self.sync_names()?;
        let files = std::mem::take(&mut kept.manifest.files);
        kept.manifest.set_files(files, complete);
        kept.written = Instant::now();
        if last {
            // The run has ended.
            kept.manifest.run = None;
        }
        kept.manifest.write(kept.folder, &kept.name)
    }
}
