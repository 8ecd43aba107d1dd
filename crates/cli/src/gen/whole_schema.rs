//! Datasets of several tables, made by one command, each in a folder of its name: TPC-H, TPC-DS, and specs.

use std::path::Path;

use sawmill_generator::{DatasetName, Part};

use crate::error::{Error, Result};
use crate::r#gen::format::Format;
use crate::r#gen::{GenArgs, Made, make};
use crate::screen::console::Console;

/// The tables that the command makes; `None` if it makes a single dataset.
pub(super) fn tables(args: &GenArgs) -> Result<Option<Vec<String>>> {
    let Some(name) = &args.dataset.dataset else { return Ok(None) };
    Ok(Some(DatasetName::new(name).tables()?).filter(|tables| !tables.is_empty()))
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
    for args in &all {
        files = files.max(args.plan(console)?.1.files);
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
