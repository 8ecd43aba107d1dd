//! Runs that have not ended, in folders without locks: found by their manifests.

use crate::error::Result;
use crate::output::folder::Folder;
use crate::output::lock::PREFIX;
use crate::output::manifest::Manifest;
use crate::output::process;

/// A run that is under way or was killed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnfinishedRun {
    /// The name of its dataset.
    pub dataset: String,
    /// Its process.
    pub process: String,
    /// Whether its process exists; `None` if it is on another machine.
    pub is_alive: Option<bool>,
    /// The name of its manifest.
    manifest: String,
    run: String,
}

impl UnfinishedRun {
    /// The unfinished runs in `folder`.
    ///
    /// # Errors
    /// The folder or a manifest cannot be read.
    pub fn find(folder: &dyn Folder) -> Result<Vec<Self>> {
        let mut found = Vec::new();
        for name in folder.files("")?.into_iter().filter(|name| is_manifest(name)) {
            let Some(manifest) = Manifest::read(folder, &name)? else { continue };
            let Some(run) = manifest.run else { continue };
            let process = process::process_of(&run).to_owned();
            let is_alive = process::is_here(&run).then(|| process::is_alive(&run));
            found.push(UnfinishedRun { dataset: manifest.dataset, process, is_alive, manifest: name, run });
        }
        Ok(found)
    }

    /// Takes the run out of its manifest, or removes a manifest that lists no files.
    ///
    /// # Errors
    /// The manifest cannot be written, or another run has replaced it.
    pub fn end(&self, folder: &dyn Folder) -> Result<()> {
        let Some(mut manifest) = Manifest::read(folder, &self.manifest)? else { return Ok(()) };
        if manifest.run.as_ref() != Some(&self.run) {
            return Err(process::not_ended(&self.run, &folder.place("")));
        }
        if manifest.files.is_empty() {
            return folder.remove(&self.manifest);
        }
        manifest.run = None;
        manifest.write(folder, &self.manifest)
    }
}

/// The dataset that is incomplete according to the bytes of its folder's manifest; `None` if the folder has all files,
/// or the bytes are not a manifest.
pub fn unfinished_dataset(manifest: &[u8]) -> Option<String> {
    let manifest: Manifest = serde_json::from_slice(manifest).ok()?;
    (!manifest.complete).then_some(manifest.dataset)
}

/// Whether a file of this name, directly in a folder, is the manifest of generated files.
pub fn is_manifest(name: &str) -> bool {
    name.starts_with(PREFIX) && name.ends_with(".json")
}
