//! `gen --table-format delta`: the files of a run become a version of a Delta table.
//!
//! ```text
//! command ─ hash of all that determines its rows ─▶ TABLE/run-HASH/ ─ files, kept if complete ─▶ commit, once for each hash
//! ```
//!
//! After a kill, the same command finds its complete files and its commit by the same hash.

use std::collections::BTreeMap;
use std::path::Path;

use sawmill_delta::{Change, Commit, Committed, NewFile, TableFolder};
use sawmill_generator::{Dataset, Existing, Output, Part, PieceSum, WrittenFile};
use sawmill_profile::Profile;

use crate::arguments::delta;
use crate::error::{Error, Result};
use crate::r#gen::destination::output;
use crate::r#gen::format::Format;
use crate::r#gen::{GenArgs, GenResult, Made, TableVersion, make as make_files};
use crate::screen::console::Console;

/// The value in the names of folders of NULL.
const NULL_FOLDER: &str = "__HIVE_DEFAULT_PARTITION__";

/// Makes the files, and commits them.
pub(super) fn make(args: &GenArgs, console: Console) -> Result<Made> {
    let place = || args.out.display().to_string();
    check(args)?;
    let plan = args.plan(console)?;
    let run = format!("run-{}", name_of(args, &plan));
    let (table, _objects) = delta::table::folder(&args.out, &args.uploads.stores)?;
    let replaces = args.layout.existing() == Existing::Replace;
    let change = if replaces { Change::Overwrite } else { Change::Append };
    let schema = plan.0.arrow_schema();
    let partitions: Vec<String> = args.layout.partition_by.iter().cloned().collect();
    let application = format!("sawmill-{run}");
    let commit = Commit::new(&application, &schema, change, Vec::new())
        .and_then(|commit| commit.partitioned_by(&partitions, &schema))
        .map_err(|error| Error::usage(error.what(), place(), error.advice()))?;
    if let Some(done) = commit.check(table.as_ref())? {
        return Ok(nothing_to_do(args, &plan.0, done));
    }
    let mut of_run = args.clone();
    of_run.table = None;
    of_run.out.push(&run);
    (of_run.layout.resume, of_run.layout.overwrite) = (true, false);
    // The run's own folder is resumed always, and --overwrite would empty the table's next version.
    let again = |error: Error| {
        error.advise_instead_of(&["--resume", "--overwrite"], "run the same command again to go on")
    };
    let mut made = make_files(&of_run, console).map_err(again)?;
    let files = made.result.files.iter().map(|file| new_file(file, &run)).collect::<Result<_, _>>()?;
    let committed = commit.with_files(files).make(table.as_ref())?;
    made.summary = format!("{}\n{}", made.summary, said(table.as_ref(), committed));
    made.result.table = Some(version_of(committed));
    Ok(made)
}

/// Rejects options that do not fit a table.
fn check(args: &GenArgs) -> Result<()> {
    let refused = |what: &str, advice: &str| Err(Error::usage(what, args.out.display().to_string(), advice));
    if args.format != Format::Parquet {
        return refused("the files of a Delta table are Parquet", "leave out --as");
    }
    if args.layout.part != Part::WHOLE {
        let advice = "generate all parts without --table-format into one folder, or the table on one machine";
        return refused("--part with --table-format: a version holds the whole dataset", advice);
    }
    if !matches!(output(args)?, Output::Directory(_) | Output::Store(_))
        || args.out.extension().is_some_and(|extension| extension == "parquet")
    {
        return refused("a table is a folder", "name a directory or a URL that does not end in .parquet");
    }
    Ok(())
}

/// The hash of all that determines the rows and files of the command.
fn name_of(args: &GenArgs, (dataset, layout, options): &super::Plan) -> String {
    let mut sum = PieceSum::default();
    let partition = &args.layout.partition_by;
    let (name, spec, seed) = (dataset.name(), dataset.spec_hash(), args.seed);
    sum.update(format!("{name:?} {spec:032x} {seed} {partition:?} {layout:?} {options:?}").as_bytes());
    sum.sum().to_string().chars().take(16).collect()
}

/// The log's entry for a file.
fn new_file(file: &WrittenFile, run: &str) -> Result<NewFile> {
    let shown = file.path.to_string_lossy().replace('\\', "/");
    let inner = shown.rsplit_once(&format!("/{run}/")).map(|(_, inner)| inner.to_owned());
    let lost = || Error::failure("the file is not in the folder of its run", shown.clone(), "report this");
    let path = format!("{run}/{}", inner.ok_or_else(lost)?);
    let mut partition_values = BTreeMap::new();
    let folders = Path::new(&path).parent().into_iter().flat_map(Path::components);
    for folder in folders {
        let Some((column, value)) = folder.as_os_str().to_str().and_then(|name| name.split_once('=')) else {
            continue;
        };
        let decoded = |text: &str| sawmill_store::percent_decoded(text).ok_or_else(lost);
        let value = if value == NULL_FOLDER { None } else { Some(decoded(value)?) };
        partition_values.insert(decoded(column)?, value);
    }
    Ok(NewFile { path, partition_values, bytes: file.bytes, rows: file.rows })
}

fn said(table: &dyn TableFolder, committed: Committed) -> String {
    let place = table.location("").map_or_else(|_| String::new(), |place| place.to_string());
    match committed.already {
        false => format!("version {} of the Delta table {place}", committed.version),
        true => format!(
            "the Delta table {place} has these files already; its newest version is {}",
            committed.version
        ),
    }
}

fn version_of(committed: Committed) -> TableVersion {
    TableVersion { format: "delta", version: committed.version, already_committed: committed.already }
}

/// The result of a command whose files an earlier run committed.
fn nothing_to_do(args: &GenArgs, dataset: &Dataset, done: Committed) -> Made {
    let out = args.out.display();
    let summary = format!(
        "nothing to do: an earlier run of this command committed its files to the Delta table {out}, whose newest \
         version is {}; give another --seed for other rows",
        done.version
    );
    let phase = Profile::new().phase("generate").finish();
    let mut result = GenResult::new(dataset, args.seed, Vec::new(), (None, None), phase);
    result.table = Some(version_of(done));
    Made { result, summary }
}
