//! What a load knows its source by: which files, and whether they still hold what was loaded.
//!
//! ```text
//! name ─▶ fingerprint (length, footer) ─▶ stamp (what the file system says) ─▶ content (sums of its units)
//!         another one: another content     the same: the content is trusted    taken anew from the source
//! ```
//!
//! A footer need not show that values changed: sizes, offsets and statistics can be the same. What a unit holds is told
//! by the content sum that its record in the target has. As long as a file's [`Stamp`] is the recorded one, its content
//! is taken to be the same; otherwise, and wherever a load is verified, the sums are taken anew ([`recheck`]).

pub mod earlier;
pub(crate) mod load_id;
pub(crate) mod portion;
pub(crate) mod recheck;
pub(crate) mod remembered;

use std::collections::{BTreeSet, HashMap};

use sawmill_source::SourceFile;

/// The files of a load as its record has them, in the load's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedFiles {
    /// Their names, in order.
    pub names: Vec<String>,
    /// Their fingerprints.
    pub fingerprints: Vec<String>,
    /// None where the content must be looked at, whatever the file system says.
    pub stamps: Vec<Option<String>>,
}

impl RecordedFiles {
    /// The record of these files.
    pub fn of(files: &[SourceFile]) -> Self {
        Self {
            names: files.iter().map(|file| file.name.clone()).collect(),
            fingerprints: files.iter().map(|file| file.fingerprint.clone()).collect(),
            stamps: files.iter().map(|file| file.stamp.clone()).collect(),
        }
    }

    /// Names of the recorded files that are not among `files`, or have another fingerprint there.
    pub fn changed(&self, files: &[SourceFile]) -> Vec<String> {
        let now: HashMap<&str, &str> =
            files.iter().map(|file| (file.name.as_str(), file.fingerprint.as_str())).collect();
        let recorded = self.names.iter().zip(&self.fingerprints);
        recorded
            .filter(|(name, fingerprint)| now.get(name.as_str()) != Some(&fingerprint.as_str()))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// The same files with the stamps that they have among `files`.
    pub fn with_stamps_of(&self, files: &[SourceFile]) -> Self {
        let now: HashMap<&str, &SourceFile> = files.iter().map(|file| (file.name.as_str(), file)).collect();
        let stamps = self.names.iter().zip(&self.stamps);
        let stamps = stamps.map(|(name, was)| match now.get(name.as_str()) {
            Some(file) => file.stamp.clone(),
            None => was.clone(),
        });
        Self { stamps: stamps.collect(), ..self.clone() }
    }

    /// Positions in `files` of those whose stamp is not the recorded one: they may hold something else.
    pub fn untrusted(&self, files: &[SourceFile]) -> BTreeSet<u32> {
        let recorded: HashMap<&str, &Option<String>> =
            self.names.iter().map(String::as_str).zip(&self.stamps).collect();
        let trusted = |file: &SourceFile| {
            file.stamp.is_some() && recorded.get(file.name.as_str()) == Some(&&file.stamp)
        };
        (0..).zip(files).filter(|(_, file)| !trusted(file)).map(|(position, _)| position).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, fingerprint: &str, stamp: Option<&str>) -> SourceFile {
        SourceFile {
            name: name.to_owned(),
            fingerprint: fingerprint.to_owned(),
            stamp: stamp.map(str::to_owned),
            rows: 1,
            bytes: 1,
        }
    }

    #[test]
    fn a_file_is_trusted_only_with_the_stamp_that_was_recorded() {
        let recorded = RecordedFiles::of(&[
            file("same", "1", Some("a")),
            file("touched", "1", Some("a")),
            file("unsettled then", "1", None),
            file("unsettled now", "1", Some("a")),
            file("other footer", "1", Some("a")),
        ]);
        let now = [
            file("same", "1", Some("a")),
            file("touched", "1", Some("b")),
            file("unsettled then", "1", Some("a")),
            file("unsettled now", "1", None),
            file("other footer", "2", Some("b")),
        ];
        assert_eq!(recorded.untrusted(&now).into_iter().collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(recorded.changed(&now), ["other footer"]);
        assert_eq!(recorded.changed(&now[1..]), ["same", "other footer"]);
    }
}
