//! Knows which objects a folder must have, and looks at each that appears.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::bucket::{Bucket, Object, Objects};

/// The folders of `gen` and `convert`.
pub const FOLDERS: [&str; 2] = ["data/", "out/"];
/// Objects of others, and objects that have unfinished uploads of others.
pub const FOREIGN: [&str; 7] = [
    "data/notes.txt",
    "data/other-00000.parquet",
    "data/_sawmill.other.json",
    "data/sub/d-00000.parquet",
    "database/d-00001.parquet",
    "outer/part-00001.parquet",
    "d-00000.parquet",
];

/// The objects of a complete run by their keys.
pub type Whole = Arc<BTreeMap<String, Arc<Vec<u8>>>>;

/// What promises depend on.
#[derive(Default)]
pub struct Audit {
    /// The results of the commands of this run.
    pub commands: Vec<Whole>,
    /// The first broken promise.
    pub violation: Option<String>,
}

/// Whether it is the key of an object that belongs to the result.
fn is_result(key: &str) -> bool {
    let name = FOLDERS.iter().find_map(|folder| key.strip_prefix(folder));
    !FOREIGN.contains(&key) && name.is_some_and(|name| !name.starts_with('_'))
}

impl Audit {
    pub fn violated(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// An object is seen: it must be whole.
    pub fn appears(&mut self, key: &str, object: &Object) {
        let mut known = self.commands.iter().filter_map(|whole| whole.get(key));
        if is_result(key) && !known.any(|bytes| *bytes == object.bytes) {
            self.violated(format!("{key} is seen with {} bytes that no run makes", object.bytes.len()));
        }
    }

    /// After exit 0 the folder has exactly the objects of the run, and those that a writer at the same time has made.
    pub fn compare(&mut self, objects: &Objects, whole: &Whole, (writer, is_alone): (usize, bool)) {
        for (key, bytes) in whole.iter() {
            match objects.get(key) {
                None => self.violated(format!("exit 0 of writer {writer} without {key}")),
                Some(there) if there.bytes != *bytes => {
                    self.violated(format!("exit 0 of writer {writer} with another {key}"));
                }
                Some(_) => {}
            }
        }
        let mut others = objects.iter().filter(|(key, _)| is_result(key) && !whole.contains_key(*key));
        if let Some((key, _)) = others.find(|(_, object)| is_alone || object.writer == writer) {
            self.violated(format!("exit 0 of writer {writer} leaves {key}"));
        }
    }

    /// Nothing is left behind, and nothing of others is gone.
    pub fn compare_rest(&mut self, bucket: &Bucket, is_state: &dyn Fn(&str) -> bool) {
        let unfinished = bucket.unfinished("");
        let is_foreign = |key: &str| FOREIGN.contains(&key);
        if let Some((key, _)) = unfinished.iter().find(|(key, _)| !is_foreign(key)) {
            self.violated(format!("an upload of {key} is left"));
        }
        for key in FOREIGN {
            if !bucket.objects.contains_key(key) || !unfinished.iter().any(|(upload, _)| upload == key) {
                self.violated(format!("{key} of another program, or its upload, is gone"));
            }
        }
        let mut left = bucket.objects.keys().filter(|key| !is_result(key) && !is_foreign(key));
        if let Some(key) = left.find(|key| !is_state(key)) {
            self.violated(format!("{key} is left"));
        }
    }
}
