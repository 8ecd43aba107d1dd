//! The files of formats other than Parquet: which to write, and how to write them whole or not at all.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use sawmill_generator::{DatasetFiles, Existing, OutputLock, Patience, protect_sources};
use sawmill_inspect::TerminalSafe;
use sawmill_store::{WholeFile, directories, is_stream};

use crate::arguments::paths::output::check_free;
use crate::arguments::stores::{Objects, objects::ObjectOutput};
use crate::error::{Error, Result};
use crate::r#gen::formats::FormatJob;
use crate::interrupt;
use crate::screen::console::Console;

/// Files to write, locked as long as this exists.
pub(crate) struct PlannedFiles {
    pub files: Vec<Planned>,
    _lock: Option<OutputLock>,
}

/// A file to write.
pub(crate) struct Planned {
    pub file: u32,
    /// `None` is standard output.
    pub path: Option<PathBuf>,
}

/// Decides which files to write and where, locks them, and removes or rejects files in their place.
pub(crate) fn plan(job: &FormatJob<'_>, console: Console) -> Result<PlannedFiles> {
    let (args, out) = (job.args, job.args.out.as_path());
    let (part, existing, sources) = (args.layout.part, args.layout.existing(), args.sources(job.dataset));
    if out == Path::new("-") {
        return Ok(PlannedFiles { files: vec![single(job, None)?], _lock: None });
    }
    let there = fs::metadata(out).ok();
    let is_file_name = out.extension().is_some_and(|e| e == args.format.extension());
    if is_stream(out) {
        return Ok(PlannedFiles { files: vec![single(job, Some(out))?], _lock: None });
    }
    let notice = |text: &str| console.notice(text);
    let patience =
        Patience { waits: existing != Existing::Refuse, notice: &notice, cancel: interrupt::flag() };
    if there.as_ref().is_some_and(fs::Metadata::is_file) || (there.is_none() && is_file_name) {
        let files = vec![single(job, Some(out))?];
        let lock = OutputLock::of_file(out, &patience)?;
        make_room_for(out, existing, &sources)?;
        return Ok(PlannedFiles { files, _lock: Some(lock) });
    }
    directories::make(out).map_err(|error| Error::of_output("creating the directory", out, &error))?;
    let files = DatasetFiles {
        directory: out,
        name: job.dataset.name(),
        extension: args.format.extension(),
        part,
        files: part.files(job.layout.files),
    };
    // Files of several formats may be written side by side.
    let name = format!("{}.{}", files.name, files.extension);
    let lock = OutputLock::of_directory(out, &name, part, &patience)?;
    files.make_room(existing, &sources)?;
    let planned = |file| Planned { file, path: Some(files.path(file)) };
    Ok(PlannedFiles { files: files.files.clone().map(planned).collect(), _lock: Some(lock) })
}

/// The only file of the job.
fn single(job: &FormatJob<'_>, path: Option<&Path>) -> Result<Planned> {
    let part = job.args.layout.part;
    let files = part.files(job.layout.files);
    match files.len() {
        1 if !job.args.layout.parts_a_single_file() => {
            Ok(Planned { file: files.start, path: path.map(Path::to_owned) })
        }
        n => {
            let what = match n {
                0 | 1 => format!("a single file is made as a whole: part {part} has none"),
                n => format!("{n} files do not fit into one"),
            };
            let place = job.args.out.display().to_string();
            Err(Error::usage(what, place, "give a directory, or ask for one file"))
        }
    }
}

/// Rejects a single file at `path`, unless it may be replaced.
fn make_room_for(path: &Path, existing: Existing, sources: &[PathBuf]) -> Result<()> {
    WholeFile::remove_abandoned(path)
        .map_err(|error| Error::of_output("reading the directory", path, &error))?;
    protect_sources(sources, path)?;
    check_free(path, existing == Existing::Replace, path.display().to_string())
}

/// A file or stream that is being written.
///
/// Dropped before it is finished, it leaves nothing.
pub(crate) enum OpenFile {
    Whole(WholeFile),
    Stream(Box<dyn Write + Send>),
    /// An object, and its stores, which have to live as long.
    Object(Box<ObjectOutput>, Objects),
}

impl Planned {
    /// Opens the file.
    pub(crate) fn open(&self) -> io::Result<OpenFile> {
        Ok(match &self.path {
            Some(path) => OpenFile::Whole(WholeFile::create(path)?),
            None => OpenFile::stdout(),
        })
    }
}

impl OpenFile {
    /// Standard output. A terminal does not act on what rows contain.
    pub(crate) fn stdout() -> Self {
        let out = io::stdout();
        match out.is_terminal() {
            true => OpenFile::Stream(Box::new(TerminalSafe::new(out))),
            false => OpenFile::Stream(Box::new(out)),
        }
    }

    fn target(&mut self) -> &mut dyn Write {
        match self {
            OpenFile::Whole(file) => file,
            OpenFile::Stream(stream) => stream,
            OpenFile::Object(object, _) => object,
        }
    }

    /// Syncs a file to disk and gives it its name.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            OpenFile::Whole(file) => file.finish(),
            OpenFile::Stream(_) => Ok(()),
            OpenFile::Object(object, _objects) => Ok(object.finish()?),
        }
    }
}

impl Write for OpenFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.target().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target().flush()
    }
}
