//! What a load reads: files, or rows of the generator.

use datafusion::error::Result;
use sawmill_generator::NamedRows;
use sawmill_source::{GeneratedRows, ParquetFiles, Source};
use serde::{Deserialize, Serialize};

use crate::error::external;
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
        let named = NamedRows::parse(dataset).map_err(external)?;
        let (spec, dataset) = Spec::read(&named.name, named.scale)?;
        let (rows, seed) = named.rows_and_seed(&dataset).map_err(external)?;
        Ok(Self::Generated { spec, rows, seed })
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
