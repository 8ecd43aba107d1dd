//! `_sawmill.NAME.json`: the files of the dataset NAME that a directory should contain.
//!
//! A part has its own manifest, `_sawmill.NAME.part-K-of-N.json`. A manifest is written next to the files
//! while they are made, completely or not at all, and again at the end. A run that resumes an earlier one
//! only uses it to find files: it reads and checks every file again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::layout::file_options::FileOptions;
use crate::layout::rows::{Layout, Part};
use crate::output::checksum::Checksum;
use crate::output::folder::{FileBytes, Folder};
use crate::output::lock::{PREFIX, part_infix};

/// The version of the manifest format.
const FORMAT: u32 = 1;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The version of this format, 1.
    pub format: u32,
    /// The dataset's name.
    pub dataset: String,
    /// The hash of its spec.
    pub spec: Checksum,
    /// The seed of all draws.
    pub seed: u64,
    /// All other options that determine the bytes of the files, by name.
    pub layout: BTreeMap<String, String>,
    /// The run that writes the files now, or was killed. Only in folders without locks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Whether all files are complete.
    pub complete: bool,
    /// The rows of the complete files.
    pub rows: u64,
    /// The bytes of the complete files.
    pub bytes: u64,
    /// The checksum over the files, see [`Checksum::of_files`]. Formerly `sum`.
    #[serde(rename = "file_checksum", alias = "sum")]
    pub sum: Checksum,
    /// The content sum of the rows of all files, as loads compute it, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_sum: Option<Checksum>,
    /// The files, in the order of their rows.
    pub files: Vec<ManifestFile>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ManifestFile {
    /// Its path, relative to the directory, with slashes.
    pub name: String,
    /// Its number in the layout. With partitions, several files have the same number.
    pub file: u32,
    /// Its rows.
    pub rows: u64,
    /// Its row groups.
    pub row_groups: u64,
    /// Its size.
    pub bytes: u64,
    /// The XXH3-128 of its bytes. Formerly `sum`.
    #[serde(rename = "file_checksum", alias = "sum")]
    pub sum: Checksum,
    /// The store's tag of this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

impl ManifestFile {
    pub(crate) fn bytes(&self) -> FileBytes<'_> {
        FileBytes { name: &self.name, bytes: self.bytes, sum: self.sum, tag: self.tag.as_deref() }
    }
}

impl Manifest {
    /// A manifest without files.
    pub(crate) fn new(
        (dataset, spec): (&str, Checksum),
        seed: u64,
        layout: &Layout,
        part: Part,
        partition_by: Option<&str>,
        options: &FileOptions,
    ) -> Self {
        let mut described = options.described();
        let mut add = |name: &str, value: String| {
            described.insert(name.to_owned(), value);
        };
        add("rows", layout.rows.to_string());
        match layout.rows_per_file {
            Some(rows) => add("rows-per-file", rows.to_string()),
            None => add("files", layout.files.to_string()),
        }
        add("row-group-rows", layout.row_group_rows.to_string());
        add("page-rows", layout.page_rows.to_string());
        if let Some(bytes) = layout.row_group_bytes.stored {
            add("row-group-bytes", bytes.to_string());
        }
        add("part", part.to_string());
        add("partition-by", partition_by.unwrap_or_default().to_owned());
        Manifest {
            format: FORMAT,
            dataset: dataset.to_owned(),
            spec,
            seed,
            layout: described,
            ..Manifest::default()
        }
    }

    pub(crate) fn file_name(name: &str, part: Part) -> String {
        format!("{PREFIX}{name}{}.json", part_infix(part))
    }

    pub(crate) fn set_files(&mut self, mut files: Vec<ManifestFile>, complete: bool) {
        files.sort_by(|a, b| (a.file, &a.name).cmp(&(b.file, &b.name)));
        self.rows = files.iter().map(|file| file.rows).sum();
        self.bytes = files.iter().map(|file| file.bytes).sum();
        self.sum = Checksum::of_files(files.iter().map(|file| (file.name.as_str(), file.sum)));
        self.files = files;
        self.complete = complete;
    }

    /// Reads the manifest with this name; `None` if it does not exist.
    ///
    /// # Errors
    /// It cannot be read, or has another format.
    pub(crate) fn read(folder: &dyn Folder, name: &str) -> Result<Option<Self>> {
        let Some(text) = folder.read(name)? else { return Ok(None) };
        let wrong = |what: String| {
            let place = folder.place(name).display().to_string();
            Error::spec(what, place, "remove it and the files, or write somewhere else")
        };
        let manifest: Self =
            serde_json::from_slice(&text).map_err(|e| wrong(format!("this is not a manifest: {e}")))?;
        if manifest.format != FORMAT {
            return Err(wrong(format!(
                "a manifest of format {}, but only format {FORMAT} is supported",
                manifest.format
            )));
        }
        Ok(Some(manifest))
    }

    /// Writes the manifest, completely or not at all, and syncs the file and its directory.
    pub(crate) fn write(&self, folder: &dyn Folder, name: &str) -> Result<()> {
        let failed = |e: serde_json::Error| Error::io(&e.into(), "writing", &folder.place(name), None);
        let mut text = serde_json::to_vec_pretty(self).map_err(failed)?;
        text.push(b'\n');
        folder.replace(name, &text)
    }

    /// Describes the differences between two runs; empty if their files are the same. Parts have the same
    /// files as the whole dataset.
    pub(crate) fn differences(&self, now: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        let mut compare = |name: &str, then: &dyn std::fmt::Display, now: &dyn std::fmt::Display| {
            let (then, now) = (then.to_string(), now.to_string());
            if then != now {
                let shown = |text: String| if text.is_empty() { "not set".to_owned() } else { text };
                differences.push(format!("{name} was {}, is {}", shown(then), shown(now)));
            }
        };
        compare("dataset", &self.dataset, &now.dataset);
        compare("spec", &self.spec, &now.spec);
        compare("seed", &self.seed, &now.seed);
        let names: std::collections::BTreeSet<&String> =
            self.layout.keys().chain(now.layout.keys()).collect();
        for name in names.into_iter().filter(|name| *name != "part") {
            let value = |of: &Self| of.layout.get(name).cloned().unwrap_or_default();
            compare(name, &value(self), &value(now));
        }
        differences
    }
}

impl FileOptions {
    /// The options by their names on the command line.
    fn described(&self) -> BTreeMap<String, String> {
        let joined = |parts: Vec<String>| parts.join(", ");
        let mut encodings: Vec<String> = self.encoding.iter().map(|e| e.to_string()).collect();
        encodings.extend(self.column_encodings.iter().map(|(column, e)| format!("{column}={e}")));
        let mut compressions = vec![self.compression.to_string()];
        compressions.extend(self.column_compressions.iter().map(|(column, c)| format!("{column}={c}")));
        let bloom = self.bloom.iter().map(|b| format!("{}:{}", b.column, b.false_positives)).collect();
        let pairs = self.key_values.iter().map(|(key, value)| format!("{key}={value}")).collect();
        [
            ("encoding", joined(encodings)),
            ("compression", joined(compressions)),
            ("data-page-version", self.page_version.number().to_string()),
            ("page-size", self.page_bytes.to_string()),
            ("statistics", self.statistics.name().to_owned()),
            ("page-index", if self.page_index { "yes" } else { "no" }.to_owned()),
            ("bloom", joined(bloom)),
            ("key-value", joined(pairs)),
        ]
        .into_iter()
        // Without this option, files have no page checksums.
        .chain(self.page_checksums.then(|| ("page-checksums", "yes".to_owned())))
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::output::folder::local::LocalFolder;

    fn manifest(seed: u64, part: &str) -> Manifest {
        let layout = Layout::new(100, 4).unwrap();
        let part = part.parse().unwrap();
        Manifest::new(("d", Checksum(1)), seed, &layout, part, None, &FileOptions::default())
    }

    #[test]
    fn a_manifest_is_read_back_as_written_and_other_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, name) = (LocalFolder::new(dir.path()), Manifest::file_name("d", Part::WHOLE));
        assert_eq!(Manifest::read(&folder, &name).unwrap(), None);
        let mut written = manifest(7, "1/1");
        let file = |name: &str, file| ManifestFile {
            name: name.to_owned(),
            file,
            rows: 5,
            row_groups: 1,
            bytes: 100,
            sum: Checksum(9),
            tag: None,
        };
        written.set_files(vec![file("b", 1), file("a", 0)], true);
        assert_eq!((written.rows, written.bytes, written.files[0].name.as_str()), (10, 200, "a"));
        written.write(&folder, &name).unwrap();
        assert_eq!(Manifest::read(&folder, &name).unwrap(), Some(written));
        fs::write(folder.place(&name), "{}").unwrap();
        assert!(Manifest::read(&folder, &name).unwrap_err().to_string().contains("not a manifest"));
    }

    #[test]
    fn a_manifest_with_the_former_names_of_checksums_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, path) = (LocalFolder::new(dir.path()), dir.path().join("m.json"));
        manifest(7, "1/1").write(&folder, "m.json").unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("\"sum\"") && !text.contains("content_sum"), "{text}");
        fs::write(&path, text.replace("file_checksum", "sum")).unwrap();
        assert_eq!(Manifest::read(&folder, "m.json").unwrap(), Some(manifest(7, "1/1")));
    }

    #[test]
    fn differences_name_the_option_and_both_values() {
        assert_eq!(manifest(1, "1/1").differences(&manifest(1, "1/1")), [""; 0]);
        let differences = manifest(1, "1/1").differences(&manifest(2, "2/3"));
        assert_eq!(differences, ["seed was 1, is 2"]);
    }
}
