//! Which dataset: a name or a file, and what its spec was when the query was planned.

use std::path::Path;

use datafusion::error::{DataFusionError, Result};
use sawmill_generator::{BUILT_IN, Dataset};
use serde::{Deserialize, Serialize};

use crate::error::{external, refused};

/// A dataset spec as it travels to executors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// The name of a built-in dataset, or the absolute path of a TOML file.
    name: String,
    /// The hash of the spec, and of the files that it names.
    hash: String,
}

impl Spec {
    /// Reads the spec `name`, and returns it with its hash.
    pub(crate) fn read(name: &str) -> Result<(Self, Dataset)> {
        let (name, dataset) = match Dataset::built_in(name) {
            Some(dataset) => (name.to_owned(), dataset.map_err(external)?),
            None => from_file(name)?,
        };
        let hash = hash_of(&dataset);
        Ok((Self { name, hash }, dataset))
    }

    /// Reads the same spec again, on any machine.
    ///
    /// # Errors
    /// It is not there, or it is another one by now.
    pub(crate) fn open(&self) -> Result<Dataset> {
        let (found, dataset) = Self::read(&self.name)?;
        if found.hash != self.hash {
            return Err(refused(
                "the dataset spec is not the one that the query was planned with",
                &self.name,
                "give all executors the same file, and do not change it while a query runs",
            ));
        }
        Ok(dataset)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

fn from_file(name: &str) -> Result<(String, Dataset)> {
    let path = match std::path::absolute(name) {
        Ok(path) if path.is_file() => path,
        _ => {
            let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            let known = names.join(", ");
            let advice = format!("name a TOML file or a built-in dataset: {known}, wide");
            return Err(refused("there is no such dataset", name, &advice));
        }
    };
    let dataset = Dataset::from_file(Path::new(&path)).map_err(external)?;
    let path = path.into_os_string().into_string().map_err(|path| -> DataFusionError {
        refused("the path is not Unicode", &path.to_string_lossy(), "rename the file")
    })?;
    Ok((path, dataset))
}

fn hash_of(dataset: &Dataset) -> String {
    format!("{:032x}", dataset.spec_hash())
}
