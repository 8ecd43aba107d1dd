//! The destination of files, which are written completely or not at all.
//!
//! A file is written under a temporary name ending with `.partial` and renamed when all bytes are on disk.
//! After an error, the partial file is removed. The next run, which locks the dataset's files, removes the
//! partial files of killed processes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::output::folder::Folder;
use crate::output::folder::local::LocalFolder;
use crate::output::sink::Sink;

/// The destination of a dataset's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Files `NAME-00000.parquet` and so on in this directory, which is created if necessary.
    Directory(PathBuf),
    /// A single file with this name.
    File(PathBuf),
    /// Files in a folder that is not a directory of this machine.
    Store(StoreOutput),
    /// A stream to something that exists and is not a regular file: a device such as `/dev/null`, or a FIFO.
    Device(PathBuf),
    /// A stream to standard output.
    Stdout,
}

/// A folder of a store as the destination of files.
#[derive(Clone, Debug)]
pub struct StoreOutput {
    /// The folder.
    pub folder: Arc<dyn Folder>,
    /// The name of a single file; `None` for files `NAME-00000.parquet` and so on.
    pub file: Option<String>,
}

impl PartialEq for StoreOutput {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.folder, &other.folder) && self.file == other.file
    }
}

impl Eq for StoreOutput {}

impl Output {
    /// Interprets the `path` of a user: `-` is standard output, an existing device or FIFO is a stream, a
    /// name ending in `.parquet` is a single file unless it is a directory, and any other path is a
    /// directory.
    pub fn from_path(path: &Path) -> Self {
        if path == Path::new("-") {
            return Output::Stdout;
        }
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => Output::Directory(path.into()),
            Ok(there) if !there.is_file() => Output::Device(path.into()),
            _ if path.extension().is_some_and(|e| e == "parquet") => Output::File(path.into()),
            _ => Output::Directory(path.into()),
        }
    }

    /// Whether it takes a single file only.
    pub fn is_single(&self) -> bool {
        match self {
            Output::Directory(_) => false,
            Output::Store(store) => store.file.is_some(),
            Output::File(_) | Output::Device(_) | Output::Stdout => true,
        }
    }

    /// The folder of the files; `None` for streams.
    pub(crate) fn folder(&self) -> Option<Arc<dyn Folder>> {
        match self {
            Output::Directory(directory) => Some(Arc::new(LocalFolder::new(directory))),
            Output::File(path) => Some(Arc::new(LocalFolder::new(path.parent().unwrap_or(Path::new(""))))),
            Output::Store(store) => Some(Arc::clone(&store.folder)),
            Output::Device(_) | Output::Stdout => None,
        }
    }

    /// The name of file `index` of the dataset `name` in its folder.
    pub(crate) fn file_name(&self, name: &str, index: u32) -> String {
        match self {
            Output::Directory(_) | Output::Store(StoreOutput { file: None, .. }) => {
                format!("{name}-{index:05}.parquet")
            }
            Output::Store(StoreOutput { file: Some(file), .. }) => file.clone(),
            Output::File(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            Output::Device(path) => path.display().to_string(),
            Output::Stdout => "standard output".to_owned(),
        }
    }

    /// The place of file `index` of the dataset `name`, as errors name it.
    pub(crate) fn place(&self, name: &str, index: u32) -> PathBuf {
        let file = self.file_name(name, index);
        match self.folder() {
            Some(folder) => folder.place(&file),
            None => PathBuf::from(file),
        }
    }

    /// Opens a stream; `None` for files.
    pub(crate) fn open_stream(&self) -> Result<Option<Sink>> {
        let (path, made) = match self {
            Output::Stdout => (PathBuf::from("standard output"), Sink::stdout("standard output".into())),
            Output::Device(path) => (path.clone(), Sink::file(path)),
            Output::Directory(_) | Output::File(_) | Output::Store(_) => return Ok(None),
        };
        made.map(Some).map_err(|e: io::Error| Error::io(&e, "creating", &path, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::checksum::Checksum;

    #[test]
    fn the_path_determines_the_kind_of_output() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("there.parquet"), b"").unwrap();
        fs::create_dir(at("dir.parquet")).unwrap();
        assert_eq!(Output::from_path(Path::new("-")), Output::Stdout);
        assert_eq!(Output::from_path(Path::new("/dev/null")), Output::Device("/dev/null".into()));
        assert_eq!(Output::from_path(&at("there.parquet")), Output::File(at("there.parquet")));
        assert_eq!(Output::from_path(&at("new.parquet")), Output::File(at("new.parquet")));
        assert_eq!(Output::from_path(&at("dir.parquet")), Output::Directory(at("dir.parquet")));
        assert_eq!(Output::from_path(&at("new")), Output::Directory(at("new")));
    }

    #[test]
    fn an_unfinished_file_is_removed_and_a_finished_one_has_all_its_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Output::Directory(dir.path().into()).folder().unwrap();
        let mut sink = folder.create("d-00000.parquet").unwrap();
        sink.write(&[b"half"], 0).unwrap();
        let under_way: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(sawmill_store::name_of_partial(&under_way[0].to_string_lossy()), Some("d-00000.parquet"));
        drop(sink);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let mut sink = folder.create("d-00007.parquet").unwrap();
        sink.write(&[b"", b"wh", b""], 0).unwrap();
        sink.park();
        sink.write(&[b"ole"], 0).unwrap();
        let finished = sink.finish(String::new()).unwrap();
        assert_eq!(finished.bytes, 5);
        assert_eq!(finished.sum, Some(Checksum(xxhash_rust::xxh3::xxh3_128(b"whole"))));
        assert_eq!(fs::read(dir.path().join("d-00007.parquet")).unwrap(), b"whole");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_an_error_with_the_file_and_the_missing_bytes() {
        let mut sink = Output::Device("/dev/full".into()).open_stream().unwrap().unwrap();
        let error = sink.write(&[&[0; 1000], &[0; 24]], 2000).unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("3024 bytes"), "{error}");
    }
}
