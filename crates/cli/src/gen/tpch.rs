//! The tables of TPC-H as datasets: `tpch/lineitem` is one, `tpch` stands for all eight.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sawmill_generator::Dataset;

use crate::error::Error;
use crate::r#gen::{GenArgs, Made, make};
use crate::screen::console::Console;

/// The name for all tables.
const ALL: &str = "tpch";
/// The scale factor where none is given.
const DEFAULT_SCALE: f64 = 1.0;

/// The dataset `tpch/TABLE`; `None` if `name` is another name, or that of a file.
pub(crate) fn named(name: &str, scale: Option<f64>) -> Option<Result<Dataset, Error>> {
    let table = match name.strip_prefix(ALL)?.strip_prefix('/') {
        Some(table) => table,
        None if name == ALL => "",
        None => return None,
    };
    if Path::new(name).is_file() {
        return None;
    }
    if table.is_empty() {
        let names = tables().join(", tpch/");
        return Some(Err(Error::usage(
            "all tables of TPC-H, where one is needed",
            name,
            format!("name one: tpch/{names}"),
        )));
    }
    Some(table_of(table, scale.unwrap_or(DEFAULT_SCALE)))
}

#[cfg(feature = "tpch")]
fn table_of(table: &str, scale: f64) -> Result<Dataset, Error> {
    let table: sawmill_generator::TpchTable = table.parse()?;
    Ok(Dataset::tpch(table, scale)?)
}

#[cfg(not(feature = "tpch"))]
fn table_of(table: &str, _: f64) -> Result<Dataset, Error> {
    Err(Error::not_built(format!("the dataset tpch/{table}"), "tpch"))
}

#[cfg(feature = "tpch")]
fn tables() -> Vec<&'static str> {
    sawmill_generator::TpchTable::ALL.map(sawmill_generator::TpchTable::name).to_vec()
}

#[cfg(not(feature = "tpch"))]
fn tables() -> Vec<&'static str> {
    vec!["lineitem"]
}

/// Whether the command makes all tables.
pub(super) fn is_all(args: &GenArgs) -> bool {
    args.dataset.name() == Some(ALL) && !Path::new(ALL).is_file()
}

/// Makes all tables, each in a folder of its name.
pub(super) fn make_all(
    args: &GenArgs,
    console: Console,
    cancel: &Arc<AtomicBool>,
) -> Result<Vec<Made>, Error> {
    let out = args.out.display().to_string();
    if args.out == Path::new("-") || args.out.extension().is_some_and(|extension| extension == "parquet") {
        return Err(Error::usage(
            "eight tables do not fit into one file",
            out,
            "name a directory with --out",
        ));
    }
    if args.layout.partition_by.is_some() {
        let advice = "generate a table alone: tpch/orders";
        return Err(Error::usage("--partition-by with all tables of TPC-H", out, advice));
    }
    let to_device = args.out.starts_with("/dev");
    let make = |table: &str| {
        let mut args = args.clone();
        args.dataset.set_name(format!("{ALL}/{table}"));
        if !to_device {
            args.out.push(table);
        }
        make(&args, console, cancel)
    };
    tables().into_iter().map(make).collect()
}
