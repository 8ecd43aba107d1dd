//! The file that `fix` and `extract` write: whole or not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use sawmill_store::{Location, WholeFile};

use crate::arguments::paths::output::{check_free, whole_file};
use crate::arguments::stores::StoreArgs;
use crate::error::{Error, Result};
use crate::footer::escaped_path;

/// The file to read, and the file to write.
#[derive(Args, Debug)]
pub(super) struct CopyArgs {
    /// The file: a path, a URL, or - for standard input.
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// The file to write.
    #[arg(value_name = "OUT")]
    pub out: PathBuf,
    /// Replace OUT if it exists.
    #[arg(long)]
    pub overwrite: bool,
    #[command(flatten)]
    pub stores: StoreArgs,
}

/// A file on this machine that is being written.
pub(super) struct OutputFile {
    file: WholeFile,
    path: PathBuf,
}

impl OutputFile {
    /// Begins the file `out`.
    ///
    /// # Errors
    ///
    /// It exists and may not be replaced, or cannot be written.
    pub fn create(out: &Path, replaces: bool) -> Result<Self> {
        let name = escaped_path(out);
        if let Location::Object(_) = Location::new(out)? {
            let advice = "name a file";
            return Err(Error::usage("expected the name of a file to write, found a URL", name, advice));
        }
        if out == Path::new("-") {
            let what = "the file cannot go to standard output, which has the report";
            return Err(Error::usage(what, name, "name a file"));
        }
        check_free(out, replaces, name)?;
        let file = whole_file(out, replaces).map_err(|error| Error::of_output("writing", out, &error))?;
        Ok(Self { file, path: out.to_owned() })
    }

    /// Writes the file and gives it its name.
    ///
    /// # Errors
    ///
    /// Writing failed. Nothing is left of it.
    pub fn finish(mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let mut out = io::BufWriter::with_capacity(1 << 20, &mut self.file);
        let written = write(&mut out).and_then(|()| out.flush());
        drop(out);
        written
            .and_then(|()| self.file.finish())
            .map_err(|error| Error::of_output("writing", &self.path, &error))
    }
}
