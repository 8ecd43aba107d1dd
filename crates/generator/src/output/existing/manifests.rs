//! Finds the manifests of a dataset in a folder: of the whole dataset, and of parts.

use crate::error::{Error, Result};
use crate::layout::rows::Part;
use crate::output::folder::Folder;
use crate::output::lock::part_in_name;
use crate::output::manifest::Manifest;

/// How often a folder is listed again whose manifests are being replaced.
const LOOKS: u32 = 8;

/// A manifest in the folder.
#[derive(Debug)]
pub(crate) struct Found {
    /// The name of its file.
    pub name: String,
    /// The part in its name.
    pub part: Part,
    manifest: Result<Manifest>,
}

impl Found {
    /// The manifest.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn manifest(&self) -> Result<&Manifest> {
        self.manifest.as_ref().map_err(Error::clone)
    }

    /// The manifest, if it can be read.
    pub(crate) fn readable(&self) -> Option<&Manifest> {
        self.manifest.as_ref().ok()
    }
}

/// Finds the manifests of the dataset `name` in `folder` that matter to `now`, the whole dataset's first: all for
/// the whole dataset. Other parts of the same division have other files, so a part needs only one manifest of a
/// part that has files, to compare with; thousands of parts would read each other's manifests millions of times.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn find(folder: &dyn Folder, name: &str, now: Part) -> Result<Vec<Found>> {
    let mut looks = 0;
    loop {
        looks += 1;
        let (found, gone) = find_once(folder, name, now)?;
        if !gone || looks == LOOKS {
            return Ok(found);
        }
    }
}

/// The same, and whether a manifest was gone between listing and reading. In a folder without locks another run may
/// have replaced the parts' manifests by one for all files, which was not listed then.
fn find_once(folder: &dyn Folder, name: &str, now: Part) -> Result<(Vec<Found>, bool)> {
    let (mut found, mut compared, mut gone) = (Vec::new(), false, false);
    let is_beside = |part: Part| part != now && part.parts() == now.parts();
    for file in folder.files("")? {
        let Some(part) = part_in_name(&file, name, "json") else { continue };
        if is_beside(part) && compared {
            continue;
        }
        let manifest = match Manifest::read(folder, &file) {
            Ok(None) => {
                gone = true;
                continue;
            }
            Ok(Some(manifest)) => Ok(manifest),
            Err(error) => Err(error),
        };
        compared |= is_beside(part) && manifest.as_ref().is_ok_and(|manifest| !manifest.files.is_empty());
        found.push(Found { name: file, part, manifest });
    }
    found.sort_by_key(|found: &Found| (found.part.parts(), found.part.index()));
    Ok((found, gone))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::file_options::FileOptions;
    use crate::layout::rows::Layout;
    use crate::output::checksum::Checksum;
    use crate::output::folder::local::LocalFolder;
    use crate::output::manifest::ManifestFile;

    #[test]
    fn manifests_of_the_dataset_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let folder = LocalFolder::new(dir.path());
        let write = |dataset: &str, part: &str, file: &str| {
            let layout = Layout::new(100, 4).unwrap();
            let (part, options) = (part.parse().unwrap(), FileOptions::default());
            let manifest = Manifest::new((dataset, Checksum(1)), 1, &layout, part, None, &options);
            manifest.write(&folder, file).unwrap();
        };
        write("trips", "2/3", "_sawmill.trips.part-2-of-3.json");
        write("trips", "1/1", "_sawmill.trips.json");
        write("trips", "2/2", "_sawmill.trips.part-2-of-2.json");
        write("other", "1/1", "_sawmill.other.json");
        write("trips-2", "1/1", "_sawmill.trips-2.json");
        let found = find(&folder, "trips", Part::WHOLE).unwrap();
        let parts: Vec<String> = found.iter().map(|found| found.part.to_string()).collect();
        assert_eq!(parts, ["1/1", "2/2", "2/3"]);
        assert!(found.iter().all(|found| found.readable().is_some()));
    }

    #[test]
    fn a_part_reads_one_manifest_with_files_of_the_parts_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = LocalFolder::new(dir.path());
        for (number, files) in [(1, 0), (2, 1), (3, 1), (4, 1)] {
            let part: Part = format!("{number}/4").parse().unwrap();
            let (layout, options) = (Layout::new(100, 4).unwrap(), FileOptions::default());
            let mut manifest = Manifest::new(("trips", Checksum(1)), 1, &layout, part, None, &options);
            let file = ManifestFile {
                name: format!("trips-{number}"),
                file: number,
                rows: 25,
                row_groups: 1,
                bytes: 100,
                sum: Checksum(9),
                tag: None,
            };
            manifest.set_files(vec![file; files], true);
            manifest.write(&folder, &Manifest::file_name("trips", part)).unwrap();
        }
        let parts = |now: &str| {
            let found = find(&folder, "trips", now.parse().unwrap()).unwrap();
            found.iter().filter(|found| found.part.to_string() != now).count()
        };
        // Part 1 has no files, and may be found before one that has.
        assert!((1..=2).contains(&parts("4/4")), "{}", parts("4/4"));
        assert_eq!((parts("1/1"), parts("1/2")), (4, 4));
    }
}
