//! One run: its threads take planned row groups in file order and append each to its file in turn.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sawmill_profile::{Pool, WaitKind, span, wait};
use sawmill_store::directories::Unsynced;

use crate::error::{Error, Result};
use crate::layout::rows::PlannedGroup;
use crate::output::existing::Settled;
use crate::output::folder::{Folder, MadeFile};
use crate::output::manifest::{Manifest, ManifestFile};
use crate::output::sink::Sink;
use crate::write::dataset::{Job, WrittenFile};
use crate::write::file_metadata::FileEnd;
use crate::write::partition::{MadeGroup, PlannedGroupMaker};
use crate::write::plan::FilePlan;

/// How often the manifest of a directory is updated while files are made.
const MANIFEST_EVERY: Duration = Duration::from_secs(2);

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
    /// The state of a file before its first row group, and the condition on which threads wait for their turn.
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

pub(super) struct Run<'a> {
    plan: &'a FilePlan<'a>,
    job: &'a Job<'a>,
    /// `None` for streams.
    folder: Option<&'a dyn Folder>,
    /// The number of the first of `files`.
    first_file: u32,
    files: Vec<(Mutex<FileState>, Condvar)>,
    manifest: Option<Mutex<KeptManifest<'a>>>,
    made: Mutex<MadeFiles>,
    stop: AtomicBool,
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Run<'a> {
    /// A run that has made no file. `manifest` is a directory's manifest, with its folder and its name there.
    pub(super) fn new(
        plan: &'a FilePlan<'a>,
        job: &'a Job<'a>,
        folder: Option<&'a dyn Folder>,
        manifest: Option<(Manifest, &'a dyn Folder, String)>,
    ) -> Self {
        let files = job.part.files(job.layout.files);
        let written = Instant::now();
        Run {
            plan,
            job,
            folder,
            first_file: files.start,
            files: files.map(|file| FileState::planned(job.layout.row_groups(file))).collect(),
            manifest: manifest
                .map(|(manifest, folder, name)| Mutex::new(KeptManifest { manifest, folder, name, written })),
            made: Mutex::default(),
            stop: AtomicBool::new(false),
        }
    }

    /// Writes the manifest with the files that are kept, then makes room for the others.
    pub(super) fn announce(&self, settled: &Settled) -> Result<()> {
        let Some(kept) = &self.manifest else { return Ok(()) };
        let room = {
            let kept = lock(kept);
            kept.manifest.write(kept.folder, &kept.name)?;
            settled.make_room(kept.folder)
        };
        if room.is_err() {
            // The run ends here. The first error is the one to report.
            let _ = self.save_manifest(false, true);
        }
        room
    }

    fn state(&self, file: u32) -> &(Mutex<FileState>, Condvar) {
        &self.files[(file - self.first_file) as usize]
    }

    /// Makes the `missing` files and writes the manifest. After a failure the manifest lists the files that
    /// are complete.
    pub(super) fn make_files(&self, missing: Vec<u32>) -> Result<()> {
        // Files without rows have no row group that would create them.
        let mut empty = missing.iter().filter(|file| self.job.layout.row_groups(**file) == 0);
        let made = empty.try_for_each(|file| self.finish_file(*file, &mut lock(&self.state(*file).0)));
        let made = made.and_then(|()| self.make_row_groups(missing));
        let made = made.and_then(|()| self.check_names());
        let saved = self.sync_names().and_then(|()| self.save_manifest(made.is_ok(), true));
        made.and(saved)
    }

    /// The files that were made and those that were kept, in the order of the layout.
    pub(super) fn written_files(&self, kept: Vec<ManifestFile>) -> Vec<WrittenFile> {
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

    /// Makes all row groups of the `missing` files, on the job's threads.
    fn make_row_groups(&self, missing: Vec<u32>) -> Result<()> {
        let Job { layout, threads, writers, seed, phase, .. } = *self.job;
        let planned = layout.planned_groups(missing, writers.unwrap_or(threads).get());
        let pool = Pool::new("generate", threads.get(), Some(&phase.sink()));
        let maker = || PlannedGroupMaker::new(self.plan, seed);
        pool.for_each(planned, &self.stop, maker, |maker, group| self.make(&group, maker))
    }

    /// Makes and appends the row group, or several if it ends early at its bytes.
    fn make(&self, planned: &PlannedGroup, maker: &mut PlannedGroupMaker<'_>) -> Result<()> {
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

    fn check(&self) -> Result<()> {
        if self.job.cancel.load(Relaxed) || self.stop.load(Relaxed) {
            return Err(Error::cancelled());
        }
        Ok(())
    }

    /// Waits for the turn of the planned group, then appends the row groups of `rows` to their files. The
    /// turn ends with the last row of the planned group.
    fn append(&self, planned: &PlannedGroup, rows: Range<u64>, groups: &[MadeGroup]) -> Result<()> {
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
    ) -> Result<u64> {
        if !state.open.contains_key(&group.folder) {
            state.open.insert(group.folder.clone(), self.create(file, &group.folder)?);
        }
        // It was inserted above if it was missing.
        let Some(open) = state.open.get_mut(&group.folder) else { return Ok(0) };
        let before = open.sink.written;
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
        Ok(open.sink.written - before)
    }

    fn create(&self, file: u32, folder: &str) -> Result<OpenFile> {
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
    fn finish_file(&self, file: u32, state: &mut FileState) -> Result<()> {
        if state.open.is_empty() && self.plan.partition.is_none() {
            state.open.insert(String::new(), self.create(file, "")?);
        }
        let _finishing = span("finish file");
        let mut listed = Vec::new();
        for (_, OpenFile { name, mut sink, end }) in std::mem::take(&mut state.open) {
            let (rows, row_groups) = (end.rows(), end.groups.len() as u64);
            let before = sink.written;
            let pieces = end.finish(self.plan, before);
            sink.write(&pieces.each_ref().map(Vec::as_slice), 0)?;
            self.job.phase.add_bytes(sink.written - before + 4);
            let made = sink.finish(name)?;
            let (path, bytes, sum) = (made.path.clone(), made.bytes, made.sum);
            if let (Some(_), Some(sum)) = (&self.manifest, sum) {
                let (name, tag) = (made.name.clone(), made.tag.clone());
                listed.push(ManifestFile { name, file, rows, row_groups, bytes, sum, tag });
            }
            if self.folder.is_some() {
                let mut all = lock(&self.made);
                if made.identity.is_some() {
                    all.unsynced.named(&path);
                }
                all.files.push(made);
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
    fn check_names(&self) -> Result<()> {
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
    fn sync_names(&self) -> Result<()> {
        let synced = lock(&self.made).unsynced.sync();
        synced.map_err(|(e, directory)| Error::io(&e, "syncing the directory", &directory, None))
    }

    /// Writes the manifest if it is due or the last one. The files that it names, and their names, are
    /// already on disk.
    fn save_manifest(&self, complete: bool, last: bool) -> Result<()> {
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
