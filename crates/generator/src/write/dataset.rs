//! The writing of a dataset: units of work out to threads, row groups in to files.
//!
//! Threads take row groups in the order of the files, or of as many files at a time as there are
//! writers, and make each in memory. A row group is appended when those before it in its file have
//! been, so a thread that is early waits; since threads take the groups in order, it waits for at most
//! one row group of another thread. At most `threads` row groups are in memory.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sawmill_profile::{Phase, WaitKind, span, wait};
use serde::Serialize;

use crate::checksum::Checksum;
use crate::error::Error;
use crate::layout::{Layout, Part, PlannedGroup, PlannedGroups};
use crate::options::FileOptions;
use crate::output::dataset_files::{self, DatasetFiles};
use crate::output::destination::Output;
use crate::output::existing::{self, Directory, EarlierFiles, Existing, Settled};
use crate::output::lock::{OutputLock, Patience};
use crate::output::manifest::{Manifest, ManifestFile};
use crate::output::sink::Sink;
use crate::spec::dataset::Dataset;
use crate::write::file_metadata::FileEnd;
use crate::write::partition::{MadeGroup, PlannedGroupMaker};
use crate::write::plan::FilePlan;
use sawmill_store::Identity;
use sawmill_store::directories::{self, Unsynced};

/// How often the manifest of a directory is brought up to date while files are made.
const MANIFEST_EVERY: Duration = Duration::from_secs(2);

/// What the writing of a dataset needs beside the dataset. [`Job::new`] fills in the rest.
#[derive(Debug)]
pub struct Job<'a> {
    /// How rows are laid out.
    pub layout: &'a Layout,
    /// Where files go.
    pub output: &'a Output,
    /// How files are written.
    pub options: FileOptions,
    /// The seed; the same seed gives the same bytes.
    pub seed: u64,
    /// Threads that make row groups.
    pub threads: NonZeroUsize,
    /// Files that are written at a time; as many as threads where it is not said.
    pub writers: Option<NonZeroUsize>,
    /// The part of the files that is made.
    pub part: Part,
    /// A column, not inside of a list or struct, each of whose values gets a folder `COLUMN=VALUE`
    /// with files of the rows that have it, without the column.
    pub partition_by: Option<String>,
    /// What becomes of the files of an earlier run in the same directory, or of the single file that is
    /// there.
    pub existing: Existing,
    /// Files that the dataset was taken from: none of them is replaced or removed.
    pub sources: Vec<PathBuf>,
    /// The content sum of the rows of all files, for the manifest, where it is known.
    pub content_sum: Option<Checksum>,
    /// Rows and bytes are counted on it as row groups are written.
    pub phase: &'a Phase,
    /// Rows of files that stay as they are are counted on it, as they are found whole.
    pub kept_rows: Option<&'a AtomicU64>,
    /// Is given a line that says so when the job waits for another run's end.
    pub notices: Notices<'a>,
    /// When it becomes true the job ends soon, without unfinished files.
    pub cancel: &'a AtomicBool,
}

/// Who is given lines that a person should read at once; unasked nobody.
#[derive(Clone, Copy, Default)]
pub struct Notices<'a>(pub Option<&'a (dyn Fn(&str) + Sync)>);

impl std::fmt::Debug for Notices<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Notices").field(&self.0.is_some()).finish()
    }
}

impl<'a> Job<'a> {
    /// All files of `layout` with the default options, seed 42, on one thread.
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
    /// Its number in the layout; the files of several partitions share it.
    pub file: u32,
    /// Its rows.
    pub rows: u64,
    /// Its row groups.
    pub row_groups: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The XXH3-128 of its bytes; devices have none.
    #[serde(rename = "file_checksum")]
    pub sum: Option<Checksum>,
    /// Whether an earlier run wrote it.
    pub kept: bool,
}

/// Writes `dataset`. The files are whole when this returns; on an error those that were finished
/// stay, the others are gone. A directory gets a [`Manifest`]. A run locks what it writes: another one
/// that finds it at work waits for its end if it is to keep or replace files, else it is an error.
///
/// # Errors
/// When the layout or the options do not fit the dataset or the output, files of an earlier run are in
/// the way, another run writes the same files, a file cannot be written, or the job is cancelled.
pub fn write(dataset: &Dataset, job: &Job<'_>) -> Result<Vec<WrittenFile>, Error> {
    let files = job.part.files(job.layout.files);
    if job.output.is_single() && (files.len() != 1 || job.partition_by.is_some()) {
        let what = match &job.partition_by {
            Some(column) => format!("a folder for each {column} in one file"),
            None => format!("{} files into one", files.len()),
        };
        let place = job.output.file_path(dataset.name(), 0).display().to_string();
        return Err(Error::spec(what, place, "give a directory, or ask for one file"));
    }
    let plan = FilePlan::new(&job.options, dataset, job.partition_by.as_deref())?;
    let identity = (dataset.name(), Checksum(dataset.spec_hash()));
    let partition_by = job.partition_by.as_deref();
    let mut manifest = Manifest::new(identity, job.seed, job.layout, job.part, partition_by, &job.options);
    let check = || if job.cancel.load(Relaxed) { Err(Error::cancelled()) } else { Ok(()) };
    let directory = match job.output {
        Output::Directory(path) => {
            let files = DatasetFiles {
                directory: path,
                name: dataset.name(),
                extension: "parquet",
                part: job.part,
                files: files.clone(),
            };
            Some(Directory { path, files, layout: job.layout, partition_by })
        }
        _ => None,
    };
    job.output.prepare()?;
    let _locked = lock_output(dataset, job)?;
    if let Output::File(path) = job.output {
        existing::settle_file(path, job.earlier_files())?;
    }
    let settled = match &directory {
        Some(directory) => directory.settle(job.earlier_files(), &manifest, &check)?,
        None => Settled::default(),
    };
    if let (Some(notice), Some(say)) = (&settled.notice, job.notices.0) {
        say(notice);
    }
    manifest.content_sum = job.content_sum;
    if let (None, Existing::Resume, Some(directory)) = (job.content_sum, job.existing, &directory) {
        // The same rows, of which an earlier run has taken it.
        manifest.content_sum = Manifest::read(&directory.manifest())?.and_then(|then| then.content_sum);
    }
    let kept = &settled.kept;
    let missing: Vec<u32> =
        files.clone().filter(|file| !kept.iter().any(|kept| kept.file == *file)).collect();
    let states = files.clone().map(|file| {
        let row_groups = job.layout.row_groups(file) as usize;
        (Mutex::new(FileState { row_groups, ..FileState::default() }), Condvar::new())
    });
    let writers = job.writers.unwrap_or(job.threads).get();
    manifest.set_files(kept.clone(), false);
    let run = Run {
        plan: &plan,
        job,
        units: Mutex::new(job.layout.units(missing.clone(), writers)),
        first_file: files.start,
        files: states.collect(),
        manifest: directory.as_ref().map(|directory| {
            Mutex::new(KeptManifest { manifest, path: directory.manifest(), written: Instant::now() })
        }),
        made: Mutex::default(),
        failure: Mutex::new(None),
        stop: AtomicBool::new(false),
    };
    if let (Some(kept), Some(directory)) = (&run.manifest, &directory) {
        let kept = lock(kept);
        kept.manifest.write(&kept.path)?;
        settled.make_room(directory.path)?;
    }
    // A file without rows has no row group that would make it.
    for file in missing {
        if job.layout.row_groups(file) == 0 {
            run.finish_file(file, &mut lock(&run.state(file).0))?;
        }
    }
    run.on_threads();
    let failure = lock(&run.failure).take();
    let failure = failure.or_else(|| run.check_names().err());
    let saved = run.sync_names().and_then(|()| run.save_manifest(failure.is_none(), true));
    if let Some(error) = failure {
        return Err(error);
    }
    saved?;
    let mut written: Vec<WrittenFile> =
        run.files.iter().flat_map(|(state, _)| std::mem::take(&mut lock(state).done)).collect();
    written.extend(settled.kept.into_iter().map(|file| WrittenFile {
        path: directory.as_ref().map_or_else(PathBuf::new, |directory| directory.path.join(&file.name)),
        file: file.file,
        rows: file.rows,
        row_groups: file.row_groups,
        bytes: file.bytes,
        sum: Some(file.sum),
        kept: true,
    }));
    written.sort_by(|a, b| (a.file, &a.path).cmp(&(b.file, &b.path)));
    Ok(written)
}

/// Locks the files that the job writes; streams have no lock.
fn lock_output(dataset: &Dataset, job: &Job<'_>) -> Result<Option<OutputLock>, Error> {
    let say = |text: &str| {
        if let Some(say) = job.notices.0 {
            say(text);
        }
    };
    let patience = Patience { waits: job.existing != Existing::Refuse, say: &say, cancel: job.cancel };
    match job.output {
        Output::Directory(path) => {
            OutputLock::of_directory(path, dataset.name(), job.part, &patience).map(Some)
        }
        Output::File(path) => OutputLock::of_file(path, &patience).map(Some),
        Output::Device(_) | Output::Stdout => Ok(None),
    }
}

/// A file of the layout among the row groups that threads make for it.
#[derive(Debug, Default)]
struct FileState {
    /// Row groups that it will have.
    row_groups: usize,
    /// Row groups appended.
    appended: usize,
    /// The file, or one in each folder, from its first row group on.
    open: BTreeMap<String, OpenFile>,
    done: Vec<WrittenFile>,
}

#[derive(Debug)]
struct OpenFile {
    sink: Sink,
    end: FileEnd,
}

#[derive(Debug)]
struct KeptManifest {
    manifest: Manifest,
    path: PathBuf,
    written: Instant,
}

/// The files that this run gave their names.
#[derive(Debug, Default)]
struct MadeFiles {
    identities: Vec<(PathBuf, Identity, Option<Checksum>)>,
    unsynced: Unsynced,
}

struct Run<'a> {
    plan: &'a FilePlan<'a>,
    job: &'a Job<'a>,
    units: Mutex<PlannedGroups<'a>>,
    /// The number of the first of `files`.
    first_file: u32,
    files: Vec<(Mutex<FileState>, Condvar)>,
    manifest: Option<Mutex<KeptManifest>>,
    made: Mutex<MadeFiles>,
    failure: Mutex<Option<Error>>,
    stop: AtomicBool,
}

/// Ends the other threads when this one panics: they would wait for its row group for ever.
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

    /// Makes all row groups.
    fn on_threads(&self) {
        std::thread::scope(|scope| {
            for worker in 0..self.job.threads.get() {
                let name = format!("generate-{worker}");
                let spawned = std::thread::Builder::new().name(name.clone()).spawn_scoped(scope, move || {
                    let _attached = self.job.phase.attach(&name);
                    self.work();
                });
                if let Err(error) = spawned {
                    // Fewer threads do the same work; none is an error.
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

    /// Makes row groups until there are none left.
    fn work(&self) {
        let _others_stop = StopOnPanic(&self.stop);
        let mut maker = match PlannedGroupMaker::new(self.plan, self.job.seed) {
            Ok(maker) => maker,
            Err(error) => return self.fail(error),
        };
        loop {
            let Some(unit) = lock(&self.units).next() else { return };
            if let Err(error) = self.make(&unit, &mut maker) {
                self.fail(error);
                return;
            }
        }
    }

    /// Makes and appends the row group, or the several that it becomes where its bytes end it early.
    fn make(&self, unit: &PlannedGroup, maker: &mut PlannedGroupMaker<'_>) -> Result<(), Error> {
        let layout = self.job.layout;
        let mut rows = unit.rows.clone();
        while !rows.is_empty() {
            let bytes = layout.row_group_bytes;
            let end = maker.make(rows.clone(), layout.page_rows, bytes, &|| self.check())?;
            self.append(unit, rows.start..end, maker.groups())?;
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

    /// Appends a row group of `rows` of the unit to its file when the unit's turn has come, which ends with its last row.
    fn append(&self, unit: &PlannedGroup, rows: Range<u64>, groups: &[MadeGroup]) -> Result<(), Error> {
        let file = unit.file as u32;
        let (state, turn) = self.state(file);
        let mut state = lock(state);
        if state.appended != unit.row_group {
            let _waiting = wait(WaitKind::Lock);
            while state.appended != unit.row_group {
                self.check()?;
                let waited = turn.wait_timeout(state, Duration::from_millis(50));
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        self.check()?;
        let writing = span("write");
        let mut bytes = 0;
        for group in groups.iter().filter(|group| group.rows > 0) {
            bytes += self.append_group(unit.file as u32, &rows, group, &mut state)?;
        }
        writing.add_bytes(bytes);
        self.job.phase.add_rows(rows.end - rows.start);
        self.job.phase.add_bytes(bytes);
        if rows.end < unit.rows.end {
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
        // Put in just now, where it was not there.
        let Some(open) = state.open.get_mut(&group.folder) else { return Ok(0) };
        let before = open.sink.written();
        let mut pieces: Vec<&[u8]> = Vec::new();
        for chunk in &group.chunks {
            pieces.extend(chunk.pieces());
        }
        pieces.extend(group.chunks.iter().map(|chunk| chunk.bloom.as_slice()));
        // As many bytes for each row as this row group has.
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let rows_left = self.job.layout.file_rows(file).end - rows.end;
        let more = bytes as u128 * u128::from(rows_left) / u128::from((rows.end - rows.start).max(1));
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        open.sink.write(&pieces, more)?;
        if !group.folder.is_empty() {
            // There may be more folders than files that a process may have open.
            open.sink.park();
        }
        open.end.add_row_group(self.plan, &group.chunks, group.rows, before);
        Ok(open.sink.written() - before)
    }

    fn create(&self, file: u32, folder: &str) -> Result<OpenFile, Error> {
        let mut path = self.job.output.file_path(self.plan.dataset.name(), file as usize);
        if !folder.is_empty()
            && let (Some(parent), Some(name)) = (path.parent(), path.file_name())
        {
            let folder = parent.join(folder);
            directories::make(&folder).map_err(|e| Error::io(&e, "making the directory", &folder, None))?;
            path = folder.join(name);
        }
        let mut sink = self.job.output.create(path)?;
        sink.write(&[b"PAR1"], 0)?;
        Ok(OpenFile { sink, end: FileEnd::default() })
    }

    /// Writes the end of a file and gives it its name.
    fn finish_file(&self, file: u32, state: &mut FileState) -> Result<(), Error> {
        if state.open.is_empty() && self.plan.partition.is_none() {
            state.open.insert(String::new(), self.create(file, "")?);
        }
        let _finishing = span("finish file");
        let mut listed = Vec::new();
        for (folder, OpenFile { mut sink, end }) in std::mem::take(&mut state.open) {
            let (rows, row_groups) = (end.rows(), end.row_groups() as u64);
            let before = sink.written();
            let pieces = end.finish(self.plan, before);
            sink.write(&pieces.each_ref().map(Vec::as_slice), 0)?;
            self.job.phase.add_bytes(sink.written() - before + 4);
            let finished = sink.finish()?;
            if let Some(identity) = finished.identity {
                let mut made = lock(&self.made);
                made.unsynced.named(&finished.path);
                made.identities.push((finished.path.clone(), identity, finished.sum));
            }
            if let (Some(_), Some(sum)) = (&self.manifest, finished.sum) {
                let name = finished.path.file_name().map(|n| n.to_string_lossy()).unwrap_or_default();
                let name = if folder.is_empty() { name.into_owned() } else { format!("{folder}/{name}") };
                let bytes = finished.bytes;
                listed.push(ManifestFile { name, file, rows, row_groups, bytes, sum });
            }
            let (path, bytes, sum) = (finished.path, finished.bytes, finished.sum);
            state.done.push(WrittenFile { path, file, rows, row_groups, bytes, sum, kept: false });
        }
        if let Some(kept) = &self.manifest {
            // The files of all folders at once: a manifest in between would call some of them the whole.
            lock(kept).manifest.files.append(&mut listed);
        }
        self.save_manifest(false, false)
    }

    /// Makes sure that the names of this run's files are those of its files still: another program may
    /// have written into the directory, or another run that a file system without locks let in.
    fn check_names(&self) -> Result<(), Error> {
        let made = lock(&self.made);
        for (path, identity, sum) in &made.identities {
            if std::fs::metadata(path).is_ok_and(|there| Identity::of(&there) == *identity) {
                continue;
            }
            // Some network file systems number files anew: the bytes decide.
            if existing::sum_of_file(path, &|| Ok(())).ok() != *sum {
                return Err(Error::spec(
                    "the file was replaced or removed while other files were made",
                    path.display().to_string(),
                    "make sure that nothing else writes here, then run the same command with --overwrite",
                ));
            }
        }
        Ok(())
    }

    /// Puts the names of the finished files on disk.
    fn sync_names(&self) -> Result<(), Error> {
        let synced = lock(&self.made).unsynced.sync();
        synced.map_err(|(e, directory)| Error::io(&e, "syncing the directory", &directory, None))
    }

    /// Writes the manifest, if its time has come or it is the last. The files that it names are on disk
    /// before, and so are their names.
    fn save_manifest(&self, complete: bool, last: bool) -> Result<(), Error> {
        let Some(kept) = &self.manifest else { return Ok(()) };
        let mut kept = lock(kept);
        if !last && kept.written.elapsed() < MANIFEST_EVERY {
            return Ok(());
        }
        if last && !complete && kept.manifest.files.is_empty() {
            // Nothing was finished: it would speak of nothing.
            return dataset_files::remove(&kept.path);
        }
        self.sync_names()?;
        let files = std::mem::take(&mut kept.manifest.files);
        kept.manifest.set_files(files, complete);
        kept.written = Instant::now();
        kept.manifest.write(&kept.path)
    }
}
