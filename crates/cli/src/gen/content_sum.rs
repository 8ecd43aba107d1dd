//! The content sum of generated rows: the same that a load of their files into PostgreSQL takes.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

use sawmill_generator::{ContentSum, Dataset, Layout};
use sawmill_loader::{Control, GeneratedRows, LoadOptions, content};
use sawmill_profile::Profile;

use crate::console::Console;
use crate::error::Error;
use crate::r#gen::GenArgs;

/// The content sum of the rows that are to be written, where it is asked for. They are drawn once more for it, from
/// the dataset alone: that the files hold them, the sum of a load of the files tells.
pub(super) fn of(
    args: &GenArgs,
    (dataset, layout): (&Dataset, &Layout),
    profile: &Profile,
    console: Console,
    cancel: &AtomicBool,
) -> Result<Option<ContentSum>, Error> {
    if !args.content_sum {
        return Ok(None);
    }
    let place = || args.out.display().to_string();
    if args.layout.partition_by.is_some() {
        let what = "--content-sum with --partition-by";
        let advice =
            "in folders the column comes last and its type is that of its text: a load has another sum";
        return Err(Error::usage(what, place(), advice));
    }
    let again = args.dataset.dataset()?;
    if again.spec_hash() != dataset.spec_hash() {
        let what = "the dataset's spec has changed since the command began";
        return Err(Error::failure(what, place(), "run the command again"));
    }
    let files = args.layout.part.files(layout.files);
    let rows = match files.is_empty() {
        true => 0..0,
        false => layout.file_rows(files.start).start..layout.file_rows(files.end - 1).end,
    };
    console.step("taking the content sum of the rows");
    let source = GeneratedRows::new(again, layout.rows, args.seed).within(rows);
    let threads = args.threads.or_else(|| std::thread::available_parallelism().ok());
    let options = LoadOptions { degree: threads.map_or(1, NonZeroUsize::get), ..LoadOptions::default() };
    let phase = profile.phase("content sum");
    let tally = content(&source, &options, &Control::new(cancel, &phase))?;
    phase.finish();
    let sum = tally.content_sum.to_string().parse();
    sum.map(Some).map_err(|what: String| Error::failure(what, place(), "report this with the spec"))
}
