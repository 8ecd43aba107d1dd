//! What a load reads: files, or rows of the generator.

use datafusion::error::Result;
use sawmill_source::{GeneratedRows, ParquetFiles, Source};
use serde::{Deserialize, Serialize};

use crate::error::{external, refused};
use crate::found_files;
use crate::generated::spec::Spec;

/// A source as it travels to executors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LoadSource {
    /// Parquet files by an absolute path or pattern.
    Files(String),
    /// Rows of a dataset.
    Generated { spec: Spec, rows: u64, seed: u64 },
}

impl LoadSource {
    /// The source of a command line: a path, a pattern, or `gen:contacts?rows=1M&seed=7`.
    ///
    /// # Errors
    /// The dataset or one of its parameters is unknown.
    pub(crate) fn named(text: &str) -> Result<Self> {
        let Some(dataset) = text.strip_prefix("gen:") else {
            return Ok(Self::Files(found_files::absolute(text)?));
        };
        let (name, parameters) = dataset.split_once('?').unwrap_or((dataset, ""));
        let (spec, dataset) = Spec::read(name)?;
        let (mut rows, mut seed) = (dataset.rows(), 42);
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let number = sawmill_profile::parse_count(value).ok();
            match (name, number) {
                ("rows", Some(number)) => rows = Some(number),
                ("seed", Some(number)) => seed = number,
                _ => {
                    return Err(refused(
                        "the parameter cannot be used",
                        parameter,
                        "write gen:contacts?rows=1M&seed=7",
                    ));
                }
            }
        }
        match rows {
            Some(rows) => Ok(Self::Generated { spec, rows, seed }),
            None => Err(refused("the number of rows is missing", text, "write gen:contacts?rows=1M")),
        }
    }

    /// Opens the source on this machine.
    ///
    /// # Errors
    /// The files or the dataset are not those that the job was planned with, or cannot be read.
    pub(crate) fn open(&self) -> Result<Box<dyn Source>> {
        match self {
            Self::Files(pattern) => {
                let files = found_files::named(pattern)?;
                Ok(Box::new(ParquetFiles::open(&files).map_err(external)?))
            }
            Self::Generated { spec, rows, seed } => {
                Ok(Box::new(GeneratedRows::new(spec.open()?, *rows, *seed)))
            }
        }
    }
}
