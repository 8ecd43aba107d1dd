//! Recognises a load's source: its files, and whether they still hold the loaded rows.
//!
//! ```text
//! name ─▶ fingerprint (length, footer) ─▶ stamp (what the file system says) ─▶ content (sums of its units)
//!         different: content differs       the same: content is trusted        read again from the source
//! ```
//!
//! A footer does not always show that values changed: sizes, offsets and statistics can be the same. The
//! content sum in a unit's record in the target identifies its content. While a file's [`Stamp`] equals the
//! recorded one, the loader trusts its content; otherwise, and whenever a load is verified, it computes the
//! sums again ([`recheck`]).

pub(crate) mod load_id;
pub(crate) mod recheck;

use std::collections::{BTreeSet, HashMap};

use sawmill_source::{Error, Kind, Result, SourceFile};

/// Ends the fingerprint of a file whose rows another load has replaced.
pub const REPLACED: &str = " replaced";

/// The recorded files of a load, in the load's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedFiles {
    /// Their names, in order.
    pub names: Vec<String>,
    /// Their fingerprints.
    pub fingerprints: Vec<String>,
    /// `None` if the content must be compared, whatever the file system reports.
    pub stamps: Vec<Option<String>>,
}

impl RecordedFiles {
    /// Describes these files for the record.
    pub fn new(files: &[SourceFile]) -> Self {
        Self {
            names: files.iter().map(|file| file.name.clone()).collect(),
            fingerprints: files.iter().map(|file| file.fingerprint.clone()).collect(),
            stamps: files.iter().map(|file| file.stamp.clone()).collect(),
        }
    }

    /// Names of the recorded files that are missing from `files` or have a different fingerprint there.
    pub fn changed(&self, files: &[SourceFile]) -> Vec<String> {
        let now: HashMap<&str, &str> =
            files.iter().map(|file| (file.name.as_str(), file.fingerprint.as_str())).collect();
        let recorded = self.names.iter().zip(&self.fingerprints);
        recorded
            .filter(|(name, fingerprint)| now.get(name.as_str()) != Some(&fingerprint.as_str()))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Checks that `files` still have the content that was recorded. `appends` says that rows of them are in the table.
    ///
    /// # Errors
    /// A recorded file that is missing from `files` or has a different fingerprint there: the load cannot be resumed.
    pub fn refuse_changed(&self, files: &[SourceFile], appends: bool) -> Result<()> {
        let changed = self.changed(files);
        if changed.is_empty() {
            return Ok(());
        }
        let what = format!("a source file has changed since the load began: {}", changed.join(", "));
        Err(Error::new(Kind::Changed, what).advise(match appends {
            false => "restore the file to finish the load, or forget the load (sawmill load forget) and start from the beginning",
            true => {
                "restore the file to finish the load, or load everything from the beginning with --mode replace; its rows are in \
                 the table, and stay there after sawmill load forget; with --file-column, --changed replace would replace them"
            }
        }))
    }

    /// If some files are missing from `files` or have a different fingerprint there: the names of all files except the
    /// ones whose rows another load has replaced.
    pub(crate) fn to_replace(&self, files: &[SourceFile]) -> Vec<&String> {
        let kept = self.names.iter().zip(&self.fingerprints).filter(|(_, print)| !print.ends_with(REPLACED));
        if self.changed(files).is_empty() { Vec::new() } else { kept.map(|(name, _)| name).collect() }
    }

    /// The same files with their stamps from `files`.
    pub fn with_stamps_of(&self, files: &[SourceFile]) -> Self {
        let now: HashMap<&str, &SourceFile> = files.iter().map(|file| (file.name.as_str(), file)).collect();
        let stamps = self.names.iter().zip(&self.stamps);
        let stamps = stamps.map(|(name, was)| match now.get(name.as_str()) {
            Some(file) => file.stamp.clone(),
            None => was.clone(),
        });
        Self { stamps: stamps.collect(), ..self.clone() }
    }

    /// Positions in `files` of files whose stamp differs from the recorded one, so their content may have
    /// changed.
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
            columns: None,
        }
    }

    #[test]
    fn a_file_is_trusted_only_with_the_stamp_that_was_recorded() {
        let recorded = RecordedFiles::new(&[
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
