//! Standard benchmarks: the names of their tables, and each table as a dataset.
//!
//! The rows of a table are made by a program ([`crate::shred::row_maker`]) in chunks that can be reached directly
//! ([`rows`]); [`crate::tpch`] and [`crate::tpcds`] have the columns and the rows.

#[cfg(feature = "tpch")]
pub(crate) mod columns;
#[cfg(feature = "tpch")]
pub(crate) mod rows;
#[cfg(feature = "tpch")]
pub(crate) mod stream;

use std::fmt;

use crate::error::{Error, Result};
use crate::spec::dataset::Dataset;

/// The smallest and the largest scale factor: at 100,000, the largest that TPC-DS defines, TPC-H has 600 billion line
/// items, some 100 TB. Below 0.001 TPC-DS has no rows.
#[cfg(feature = "tpch")]
const SCALES: std::ops::RangeInclusive<f64> = 0.001..=100_000.0;

/// The scale factor where none is given.
#[cfg(feature = "tpch")]
const DEFAULT_SCALE: f64 = 1.0;

/// A benchmark whose tables are datasets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Benchmark {
    /// TPC Benchmark H: eight tables, row by row like the tables of the crate `tpchgen`.
    TpcH,
    /// TPC Benchmark DS: 24 tables, row by row like the tables of the crate `tpcdsgen`.
    TpcDs,
}

impl Benchmark {
    /// All benchmarks.
    pub const ALL: [Self; 2] = [Self::TpcH, Self::TpcDs];

    /// The name for all its tables: `tpch` or `tpcds`.
    pub fn key(self) -> &'static str {
        match self {
            Self::TpcH => "tpch",
            Self::TpcDs => "tpcds",
        }
    }

    /// The name of one of its tables among datasets: `tpch/orders`.
    pub(crate) fn table(self, table: &str) -> String {
        format!("{}/{table}", self.key())
    }

    /// The benchmark and the table that `name` names: `tpch/orders`, or `tpch` for all tables.
    pub(crate) fn named(name: &str) -> Option<(Self, Option<String>)> {
        let (key, table) = name.split_once('/').unwrap_or((name, ""));
        let benchmark = Self::ALL.into_iter().find(|benchmark| benchmark.key() == key)?;
        Some((benchmark, Some(table.to_owned()).filter(|table| !table.is_empty())))
    }

    /// The names of its tables, each after the tables that it refers to.
    #[cfg(feature = "tpch")]
    pub fn tables(self) -> Vec<&'static str> {
        match self {
            Self::TpcH => crate::tpch::TABLES.to_vec(),
            Self::TpcDs => crate::tpcds::names().collect(),
        }
    }

    /// A table for the error of a build that has none.
    #[cfg(not(feature = "tpch"))]
    pub fn tables(self) -> Vec<&'static str> {
        match self {
            Self::TpcH => vec!["lineitem"],
            Self::TpcDs => vec!["store_sales"],
        }
    }

    /// The table `name` at a scale factor, 1 by default. It has exactly [`Dataset::rows`] rows; a seed does not change
    /// them. The line items of orders are counted first, which takes a second for each billion.
    ///
    /// # Errors
    /// The benchmark lacks the table, or the scale is not a number from 0.001 to 100,000.
    #[cfg(feature = "tpch")]
    pub(crate) fn dataset(self, name: &str, scale: Option<f64>) -> Result<Dataset> {
        let tables = self.tables();
        let Some(place) = tables.iter().position(|table| *table == name) else {
            let advice = format!("the tables are {}", tables.join(", "));
            return Err(Error::spec(format!("no table of {self} is named {name:?}"), self.key(), advice));
        };
        let scale = scale.unwrap_or(DEFAULT_SCALE);
        if !SCALES.contains(&scale) {
            let advice = format!("use {} to {}", SCALES.start(), SCALES.end());
            return Err(Error::spec(format!("a scale factor of {scale}"), name, advice));
        }
        let (columns, rows, maker) = match self {
            Self::TpcH => crate::tpch::table(name, scale),
            Self::TpcDs => crate::tpcds::table(&crate::tpcds::SOURCES[place], scale)?,
        };
        let fields = columns::fields(columns);
        let generator = format!("{}gen 4", self.key());
        Ok(Dataset {
            name: name.to_owned(),
            rows: Some(rows),
            leaves: fields.len(),
            order: (0..fields.len()).collect(),
            fields,
            text_hash: xxhash_rust::xxh3::xxh3_128(
                format!("{} {name} {scale} by {generator}", self.key()).as_bytes(),
            ),
            maker: Some(maker),
            ..Dataset::default()
        })
    }

    /// The error of a build without the tables.
    #[cfg(not(feature = "tpch"))]
    pub(crate) fn dataset(self, name: &str, _: Option<f64>) -> Result<Dataset> {
        let what = "this build of sawmill does not have the feature tpch";
        Err(Error::spec(what, format!("the dataset {}/{name}", self.key()), "build it with --features full"))
    }
}

/// Its name in text: `TPC-H` or `TPC-DS`.
impl fmt::Display for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TpcH => "TPC-H",
            Self::TpcDs => "TPC-DS",
        })
    }
}
