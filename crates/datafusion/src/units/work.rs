//! The work on units.

use std::fmt::Debug;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use serde::{Deserialize, Serialize};

use crate::footers::rows::{FooterRows, FooterWork};
#[cfg(feature = "cluster")]
use crate::generated::files::{FilesWork, GeneratedFiles};
use crate::generated::rows::{GeneratedRows, RowsWork};
#[cfg(feature = "cluster")]
use crate::sinks::loads::parts::PartedLoad;

/// Takes a batch of rows; returns false if the receiver has closed.
pub(crate) type SendBatch<'a> = &'a mut (dyn FnMut(RecordBatch) -> bool + Send);

/// Work that turns units into rows. The result depends on the units alone, not on where or how often the work runs.
pub(crate) trait Work: Debug + Send + Sync {
    /// The rows that it makes.
    fn schema(&self) -> SchemaRef;

    /// The number of rows that `units` become, if that is known without doing the work.
    fn rows(&self, units: &RecordBatch) -> Option<u64>;

    /// Does the work for `units` on this thread, in batches of about `batch_rows` rows.
    ///
    /// # Errors
    /// The work failed; the error names the unit.
    fn run(&self, units: &RecordBatch, batch_rows: usize, send: SendBatch<'_>) -> Result<()>;

    /// The description from which an executor does the same work.
    #[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "only codecs send work elsewhere"))]
    fn description(&self) -> WorkDescription;

    /// The line that `EXPLAIN` shows.
    fn explained(&self) -> String;
}

/// Work as it travels to executors: names and numbers, never secrets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum WorkDescription {
    /// Rows of a dataset.
    Rows(GeneratedRows),
    /// Rows of footers.
    Footers(FooterRows),
    /// Files of a dataset.
    #[cfg(feature = "cluster")]
    Files(GeneratedFiles),
    /// Parts of a load.
    #[cfg(feature = "cluster")]
    Load(PartedLoad),
}

impl WorkDescription {
    /// Prepares the work on this machine.
    ///
    /// # Errors
    /// Something is missing on this machine, such as the file of a dataset spec.
    #[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "only codecs take work from elsewhere"))]
    pub(crate) fn open(self) -> Result<Arc<dyn Work>> {
        match self {
            Self::Rows(rows) => Ok(Arc::new(RowsWork::open(rows)?)),
            Self::Footers(rows) => Ok(Arc::new(FooterWork::new(rows))),
            #[cfg(feature = "cluster")]
            Self::Files(files) => Ok(Arc::new(FilesWork::open(files)?)),
            #[cfg(feature = "cluster")]
            Self::Load(load) => Ok(Arc::new(load)),
        }
    }
}
