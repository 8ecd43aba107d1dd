//! The number of files of a dataset that was made in parts, from the manifests of the parts.

use std::fs;

use sawmill_generator::{Output, is_manifest};
use serde_json::Value;

use crate::error::Result;

/// The number of files of the whole dataset; `None` without a manifest of a part.
pub(super) fn files(output: &Output, dataset: &str) -> Result<Option<u32>> {
    let manifests: Vec<Vec<u8>> = match output {
        Output::Directory(folder) => {
            // A folder that cannot be read is an error of the run.
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let found = entries.filter(|entry| is_manifest(&entry.file_name().to_string_lossy()));
            found.filter_map(|entry| sawmill_store::read(&entry.path()).ok()).collect()
        }
        Output::Store(store) => {
            let names = store.folder.files("")?.into_iter().filter(|name| is_manifest(name));
            names.filter_map(|name| store.folder.read(&name).transpose()).collect::<Result<_, _>>()?
        }
        Output::File(_) | Output::Device(_) | Output::Stdout => Vec::new(),
    };
    let parsed = manifests.iter().filter_map(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    let mut of_dataset = parsed.filter(|manifest| manifest["dataset"] == dataset);
    Ok(of_dataset.find_map(|manifest| manifest["layout"]["files"].as_str()?.parse().ok()))
}
