//! The writing of a dataset: units of work out to threads, row groups in to files.
//!
//! Threads take row groups in the order of the files and make each in memory. A row group is
//! appended when those before it in its file have been, so a thread that is early waits; since
//! threads take the groups in order, it waits for at most one row group of another thread. At most
//! `threads` row groups are in memory, and at most `threads` files are open.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use sawmill_profile::Phase;
use serde::Serialize;

use crate::column_chunk::{ColumnChunk, histogram, level_block};
use crate::dataset::{Dataset, Field, Leaf};
use crate::error::Error;
use crate::file_metadata::{self, WrittenChunk, WrittenRowGroup};
use crate::layout::{Layout, Unit};
use crate::output::{Output, Sink};
use crate::shred::Shredder;

/// What the writing of a dataset needs beside the dataset.
#[derive(Debug)]
pub struct Job<'a> {
    /// How rows are laid out.
    pub layout: &'a Layout,
    /// Where files go.
    pub output: &'a Output,
    /// The seed; the same seed gives the same bytes.
    pub seed: u64,
    /// Threads that make row groups.
    pub threads: NonZeroUsize,
    /// Rows and bytes are counted on it as row groups are written.
    pub phase: &'a Phase,
    /// When it becomes true the job ends soon, without unfinished files.
    pub cancel: &'a AtomicBool,
}

/// A file that was written.
#[derive(Clone, Debug, Serialize)]
pub struct WrittenFile {
    /// Its path.
    pub path: PathBuf,
    /// Its rows.
    pub rows: u64,
    /// Its row groups.
    pub row_groups: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Writes `dataset`. The files are whole when this returns; on an error those that were finished
/// stay, the others are gone.
///
/// # Errors
/// When the layout does not fit the output, a file cannot be written, or the job is cancelled.
pub fn write(dataset: &Dataset, job: &Job<'_>) -> Result<Vec<WrittenFile>, Error> {
    if job.output.is_single() && job.layout.files != 1 {
        let what = format!("{} files into one", job.layout.files);
        let place = job.output.file_path(dataset.name(), 0).display().to_string();
        return Err(Error::spec(what, place, "give a directory, or ask for one file"));
    }
    job.output.prepare()?;
    let files = (0..job.layout.files)
        .map(|file| FileState { row_groups: job.layout.row_groups(file) as usize, ..FileState::default() })
        .collect::<Vec<_>>();
    let run = Run {
        dataset,
        job,
        units: Mutex::new(Box::new(job.layout.units())),
        files: files.into_iter().map(|state| (Mutex::new(state), Condvar::new())).collect(),
        failure: Mutex::new(None),
        stop: AtomicBool::new(false),
    };
    // A file without rows has no row group that would make it.
    for file in 0..job.layout.files {
        if job.layout.row_groups(file) == 0 {
            run.finish_file(file as usize, &mut lock(&run.files[file as usize].0))?;
        }
    }
    std::thread::scope(|scope| {
        for worker in 0..job.threads.get() {
            let spawned = std::thread::Builder::new()
                .name(format!("generate-{worker}"))
                .spawn_scoped(scope, || run.work());
            if let Err(error) = spawned {
                // Fewer threads do the same work; none is an error.
                if worker == 0 {
                    run.fail(Error::spec(
                        error.to_string(),
                        "starting a thread",
                        "raise the limit on threads",
                    ));
                }
                break;
            }
        }
    });
    if let Some(error) = lock(&run.failure).take() {
        return Err(error);
    }
    Ok(run.files.iter().filter_map(|(state, _)| lock(state).done.take()).collect())
}

/// A file among the row groups that threads make for it.
#[derive(Debug, Default)]
struct FileState {
    /// Row groups that it will have.
    row_groups: usize,
    /// Open from its first row group to its last.
    sink: Option<Sink>,
    written: Vec<WrittenRowGroup>,
    done: Option<WrittenFile>,
}

struct Run<'a> {
    dataset: &'a Dataset,
    job: &'a Job<'a>,
    units: Mutex<Box<dyn Iterator<Item = Unit> + Send + 'a>>,
    files: Vec<(Mutex<FileState>, Condvar)>,
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
    /// Makes row groups until there are none left.
    fn work(&self) {
        let _others_stop = StopOnPanic(&self.stop);
        let mut shredder = Shredder::new(self.dataset, self.job.seed);
        let mut chunks: Vec<ColumnChunk> = Vec::new();
        chunks.resize_with(self.dataset.columns(), ColumnChunk::default);
        let mut leaves = Vec::with_capacity(self.dataset.columns());
        self.dataset.each_leaf(&mut |field, leaf| leaves.push((field, leaf)));
        loop {
            let Some(unit) = lock(&self.units).next() else { return };
            let made = self.make(&unit, &mut shredder, &leaves, &mut chunks);
            if let Err(error) = made.and_then(|()| self.append(&unit, &mut chunks)) {
                self.fail(error);
                return;
            }
        }
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

    /// Draws and encodes the rows of `unit` into `chunks`.
    fn make(
        &self,
        unit: &Unit,
        shredder: &mut Shredder<'_>,
        leaves: &[(&Field, &Leaf)],
        chunks: &mut [ColumnChunk],
    ) -> Result<(), Error> {
        for chunk in chunks.iter_mut() {
            chunk.clear();
        }
        let mut at = unit.rows.start;
        // For each list the encoded repetition levels, and how many entries have each.
        let mut repetition: Vec<Option<(Vec<u8>, Vec<u64>)>> = Vec::new();
        while at < unit.rows.end {
            self.check()?;
            let end = unit.rows.end.min(at + self.job.layout.page_rows);
            let shredded = shredder.rows(at..end);
            repetition.clear();
            repetition.resize(shredded.lists.len(), None);
            for ((field, leaf), chunk) in leaves.iter().zip(chunks.iter_mut()) {
                let column = &shredded.leaves[leaf.index];
                let none = (Vec::new(), Vec::new());
                let (levels, histogram) = match column.list {
                    None => &none,
                    Some(list) => repetition[list].get_or_insert_with(|| {
                        let max = field.levels.repetition;
                        let mut encoded = Vec::new();
                        level_block(&shredded.lists[list], max, &mut encoded);
                        (encoded, histogram(&shredded.lists[list], max))
                    }),
                };
                chunk.add_page(field, leaf, column, shredded.rows, levels, histogram);
            }
            at = end;
        }
        Ok(())
    }

    /// Appends the row group to its file when its turn has come.
    fn append(&self, unit: &Unit, chunks: &mut [ColumnChunk]) -> Result<(), Error> {
        let (state, turn) = &self.files[unit.file];
        let mut state = lock(state);
        while state.written.len() != unit.row_group {
            self.check()?;
            let waited = turn.wait_timeout(state, Duration::from_millis(50));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.check()?;
        let bytes = self.append_now(unit, chunks, &mut state)?;
        self.job.phase.add_rows(unit.rows.end - unit.rows.start);
        self.job.phase.add_bytes(bytes);
        if state.written.len() == state.row_groups {
            self.finish_file(unit.file, &mut state)?;
        }
        turn.notify_all();
        Ok(())
    }

    fn append_now(
        &self,
        unit: &Unit,
        chunks: &mut [ColumnChunk],
        state: &mut FileState,
    ) -> Result<u64, Error> {
        let mut sink = match state.sink.take() {
            Some(sink) => sink,
            None => self.create(unit.file)?,
        };
        let before = sink.written();
        let mut pieces: Vec<&[u8]> = Vec::new();
        for chunk in chunks.iter() {
            pieces.extend(chunk.pieces());
        }
        sink.write(&pieces)?;
        let mut offset = before;
        let chunks = chunks.iter_mut().map(|chunk| {
            let written = WrittenChunk::new(chunk, offset);
            offset += written.bytes;
            written
        });
        let rows = unit.rows.end - unit.rows.start;
        state.written.push(WrittenRowGroup { rows, chunks: chunks.collect() });
        let bytes = sink.written() - before;
        state.sink = Some(sink);
        Ok(bytes)
    }

    fn create(&self, file: usize) -> Result<Sink, Error> {
        let mut sink = self.job.output.create(self.dataset.name(), file)?;
        sink.write(&[b"PAR1"])?;
        Ok(sink)
    }

    /// Writes the end of a file and gives it its name.
    fn finish_file(&self, file: usize, state: &mut FileState) -> Result<(), Error> {
        let mut sink = match state.sink.take() {
            Some(sink) => sink,
            None => self.create(file)?,
        };
        let mut end = Vec::new();
        let row_groups = std::mem::take(&mut state.written);
        file_metadata::finish(self.dataset, &row_groups, sink.written(), &mut end);
        sink.write(&[&end])?;
        let path = sink.path().to_owned();
        let bytes = sink.finish()?;
        self.job.phase.add_bytes(end.len() as u64 + 4);
        state.done = Some(WrittenFile {
            path,
            rows: row_groups.iter().map(|g| g.rows).sum(),
            row_groups: row_groups.len() as u64,
            bytes,
        });
        Ok(())
    }
}
