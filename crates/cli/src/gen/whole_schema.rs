//! Datasets of several tables, made by one command, each in a folder of its name: TPC-H, TPC-DS, and specs.

use std::path::Path;

use sawmill_generator::{DatasetFiles, DatasetName, Existing, Part};

use crate::error::{Error, Result};
use crate::r#gen::destination::is_url;
use crate::r#gen::format::Format;
use crate::r#gen::{GenArgs, Made, Plan, make};
use crate::screen::console::Console;

/// The tables that the command makes; `None` if it makes a single dataset.
pub(super) fn tables(args: &GenArgs) -> Result<Option<Vec<String>>> {
    let Some(name) = &args.dataset.dataset else { return Ok(None) };
    Ok(Some(DatasetName::new(name).tables()?).filter(|tables| !tables.is_empty()))
}

/// The rows that are drawn before any is written, to find values that do not fit their type.
const FIRST_ROWS: u64 = 1024;

/// Refuses a table whose first rows cannot be made, or that an earlier run has made.
fn check(args: &GenArgs, (dataset, layout, _): &Plan, to_device: bool) -> Result<()> {
    if dataset.benchmark().is_none() {
        let rows = 0..layout.rows.min(FIRST_ROWS);
        dataset.batches(rows, args.seed, FIRST_ROWS as usize).next().transpose()?;
    }
    let is_elsewhere = to_device || args.table.is_some() || is_url(&args.out)?;
    if is_elsewhere || args.layout.existing() != Existing::Refuse {
        return Ok(());
    }
    let part = args.layout.part;
    let (directory, name, extension) = (&*args.out, dataset.name(), args.format.extension());
    let files = DatasetFiles { directory, name, extension, part, files: part.files(layout.files) };
    Ok(files.refuse()?)
}

/// Makes all `tables`, each in a folder of its name.
pub(super) fn make_all(args: &GenArgs, tables: &[String], console: Console) -> Result<Vec<Made>> {
    let out = args.out.display().to_string();
    let first = tables.first().map_or("", String::as_str);
    let file = args.dataset.dataset.as_deref().unwrap_or_default();
    let (name, one) = match args.dataset.learned_from.as_slice() {
        [] => (file, format!("generate a table alone: {file}/{first}")),
        _ => {
            let one = format!("save the spec (gen spec), and generate a table alone: SPEC.toml/{first}");
            ("the dataset", one)
        }
    };
    if args.out == Path::new("-") || args.out.extension().is_some_and(|extension| extension == "parquet") {
        let what = format!("{} tables do not fit into one file", tables.len());
        return Err(Error::usage(what, out, "name a directory with --out"));
    }
    if args.layout.partition_by.is_some() {
        return Err(Error::usage(format!("--partition-by with all tables of {name}"), out, one));
    }
    if args.layout.rows.is_some() {
        let advice = format!("multiply the rows of all tables by --scale, or {one}");
        return Err(Error::usage(format!("--rows cannot be used for all tables of {name}"), out, advice));
    }
    let to_device = args.out.starts_with("/dev");
    let named = |table: &String| {
        let mut args = args.clone();
        args.dataset.dataset = Some(format!("{file}/{table}"));
        args.layout.of_several_tables = true;
        if !to_device {
            args.out.push(table);
        }
        args
    };
    let all: Vec<GenArgs> = tables.iter().map(named).collect();
    // Check all tables before writing the first one.
    let mut files = 0;
    for (args, table) in all.iter().zip(tables) {
        let plan = args.plan(console)?;
        files = files.max(plan.1.files);
        check(args, &plan, to_device).map_err(|error| error.in_table(table))?;
    }
    args.layout.check_parts(files)?;
    let mut made: Vec<Made> = Vec::with_capacity(all.len());
    for (args, table) in all.iter().zip(tables) {
        made.push(make(args, console).map_err(|error| {
            let error = error.in_table(table);
            match tables[..made.len()].join(", ") {
                complete if complete.is_empty() || to_device || args.layout.part != Part::WHOLE => error,
                complete => error.advise_also(&match args.format {
                    Format::Parquet => format!("complete in {out}: {complete}; --resume keeps them"),
                    _ => format!("complete in {out}: {complete}; --overwrite makes them again"),
                }),
            }
        })?);
    }
    Ok(made)
}
