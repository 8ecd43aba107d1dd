//! The dataset of a plan: a name or a file, and the hash of its spec when the query was planned.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::error::{DataFusionError, Result};
use sawmill_generator::{Dataset, DatasetName};
use serde::{Deserialize, Serialize};

use crate::error::{external, refused};

/// A dataset spec as it travels to executors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// The name of a dataset as `sawmill gen` takes it; paths are absolute.
    name: String,
    /// The bits of the scale, if one was given: JSON might round it.
    scale: Option<u64>,
    /// The hash of the spec, and of the files that it names.
    hash: String,
}

impl Spec {
    /// Reads the spec `name` at `scale`, and returns it with its hash.
    ///
    /// # Errors
    /// The dataset does not exist, it has several tables, or its spec is not valid.
    pub(crate) fn read(name: &str, scale: Option<f64>) -> Result<(Self, Arc<Dataset>)> {
        let mut named = DatasetName::new(name);
        if named.file().is_some_and(Path::is_file) {
            let path = std::path::absolute(name)?.into_os_string().into_string();
            let path = path.map_err(|path| -> DataFusionError {
                refused("the path is not Unicode", &path.to_string_lossy(), "rename the file")
            })?;
            named = DatasetName::new(&path);
        }
        let dataset = named.dataset(scale).map_err(external)?;
        let hash = format!("{:032x}", dataset.spec_hash());
        let spec = Self { name: named.to_string(), scale: scale.map(f64::to_bits), hash };
        Ok((spec, Arc::new(dataset)))
    }

    /// Reads the same spec again, on any machine.
    ///
    /// # Errors
    /// The spec does not exist, or has changed since.
    pub(crate) fn open(&self) -> Result<Arc<Dataset>> {
        /// The table of a benchmark that this process has opened last. Its line items are counted when it is opened, which
        /// takes a second for each billion: too long for each task.
        static LAST: Mutex<Option<(Spec, Arc<Dataset>)>> = Mutex::new(None);
        // A panic cannot leave it half-changed.
        let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, dataset)) = last().as_ref().filter(|(spec, _)| spec == self) {
            return Ok(Arc::clone(dataset));
        }
        let (found, dataset) = Self::read(&self.name, self.scale.map(f64::from_bits))?;
        if found.hash != self.hash {
            return Err(refused(
                "the dataset spec is not the one that the query was planned with",
                &self.name,
                "give all executors the same file, and do not change it while a query runs",
            ));
        }
        if matches!(DatasetName::new(&self.name), DatasetName::Benchmark(..)) {
            *last() = Some((found, Arc::clone(&dataset)));
        }
        Ok(dataset)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}
