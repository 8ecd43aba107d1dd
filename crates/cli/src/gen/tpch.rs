//! The tables of TPC-H as datasets: `tpch/lineitem` is one, `tpch` stands for all eight.

use std::path::Path;

use sawmill_generator::Dataset;

use crate::error::Error;

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
pub(super) fn tables() -> Vec<&'static str> {
    sawmill_generator::TpchTable::ALL.map(sawmill_generator::TpchTable::name).to_vec()
}

#[cfg(not(feature = "tpch"))]
pub(super) fn tables() -> Vec<&'static str> {
    vec!["lineitem"]
}

/// Whether `name` stands for all tables.
pub(super) fn is_all(name: &str) -> bool {
    name == ALL && !Path::new(ALL).is_file()
}
