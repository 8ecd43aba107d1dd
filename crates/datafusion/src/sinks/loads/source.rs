//! The source of a load: files, or rows of the generator.

use std::path::Path;

use datafusion::error::Result;
use sawmill_footer::DEFAULT_MAX_FOOTER;
use sawmill_generator::NamedRows;
use sawmill_source::{GeneratedRows, Hive, ParquetFiles, Source, UnlikeFiles};
use sawmill_store::{Location, ObjectUrl};
use serde::{Deserialize, Serialize};

use crate::error::external;
use crate::found_files;
use crate::generated::spec::Spec;
use crate::objects;

/// A source as it travels to executors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LoadSource {
    /// Parquet files by an absolute path or pattern, or objects by a URL.
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
                let stores = objects::stores()?;
                let places: Vec<Location> = found_files::named(pattern)?
                    .iter()
                    .map(|name| Location::new(Path::new(name)).map_err(external))
                    .collect::<Result<_>>()?;
                let open = |url: &ObjectUrl| stores.open(url, objects::TAIL);
                // Folders such as year=2020 are columns, as for `sawmill load`.
                let files = ParquetFiles::open_located(
                    &places,
                    &open,
                    Hive::Columns,
                    DEFAULT_MAX_FOOTER,
                    &[],
                    UnlikeFiles::default(),
                );
                Ok(Box::new(files.map_err(external)?))
            }
            Self::Generated { spec, rows, seed } => {
                Ok(Box::new(GeneratedRows::new(spec.open()?, *rows, *seed)))
            }
        }
    }
}
