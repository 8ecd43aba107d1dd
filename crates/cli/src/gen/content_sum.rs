//! The content sum of generated rows: the same that a load of their files into PostgreSQL computes.
//!
//! Without folders, the rows are generated again. With folders, the column in their names is the last one and takes
//! its type from its text, so the files are read as a load reads them.

use std::path::PathBuf;

use sawmill_generator::{Checksum, Dataset, Layout, WrittenFile};
use sawmill_loader::LoadOptions;
use sawmill_postgres::content;
use sawmill_profile::Profile;
use sawmill_source::{GeneratedRows, Source};

use crate::arguments::inputs::{self, ColumnArgs, ObjectArgs};
use crate::arguments::text::TextArgs;
use crate::error::{Error, Result};
use crate::r#gen::GenArgs;
use crate::interrupt;
use crate::screen::console::Console;

/// The content sum of the rows to write, if asked for. It generates the rows again from the dataset; whether
/// the files hold them is for the sum of a load of the files to show.
pub(super) fn planned(
    args: &GenArgs,
    (dataset, layout): (&Dataset, &Layout),
    profile: &Profile,
    console: Console,
) -> Result<Option<Checksum>> {
    if !args.content_sum {
        return Ok(None);
    }
    if args.layout.partition_by.is_some() {
        // Computed from the files once they are written.
        return Ok(None);
    }
    let place = || args.out.display().to_string();
    let again = args.dataset.dataset(args.wanted(), console, &args.uploads.stores)?;
    if again.spec_hash() != dataset.spec_hash() {
        let what = "the dataset's spec has changed since the command began";
        return Err(Error::failure(what, place(), "run the command again"));
    }
    let files = args.layout.part.files(layout.files);
    let rows = match files.is_empty() {
        true => 0..0,
        false => layout.file_rows(files.start).start..layout.file_rows(files.end - 1).end,
    };
    console.step("computing the content sum of the rows");
    let source = GeneratedRows::new(again, layout.rows, args.seed).within(rows);
    compute(args, &source, profile).map(Some)
}

/// The content sum of the rows in partitioned files, if asked for. It includes files that were kept.
pub(super) fn of_folders(
    args: &GenArgs,
    files: &[WrittenFile],
    profile: &Profile,
    console: Console,
) -> Result<Option<Checksum>> {
    if !args.content_sum || args.layout.partition_by.is_none() || files.is_empty() {
        return Ok(None);
    }
    console.step("reading the files for the content sum of their rows");
    let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
    let (columns, text) = (ColumnArgs::default(), TextArgs::default());
    let objects = ObjectArgs::with_defaults(&args.uploads.stores);
    let inputs = inputs::open(&paths, &columns, &text, &objects, console)?;
    compute(args, inputs.source(), profile).map(Some)
}

fn compute(args: &GenArgs, source: &dyn Source, profile: &Profile) -> Result<Checksum> {
    let options = LoadOptions { degree: args.threads().get(), ..LoadOptions::default() };
    let phase = profile.phase("content sum");
    let tally = content(source, &options, &interrupt::control(&phase))?;
    phase.finish();
    let sum = tally.content_sum.to_string().parse();
    sum.map_err(|what: String| {
        Error::failure(what, args.out.display().to_string(), "report this with the spec")
    })
}
