//! The folder with the files that a spec names: lists of words, specs of other datasets.
//!
//! Every file read from it enters the checksum of the spec, because the rows depend on it too.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use sawmill_store::Confinement;
use xxhash_rust::xxh3::Xxh3;

/// The most bytes of a file that a spec names.
const MAX_BYTES: u64 = 256 << 20;

/// Whether a file is a Parquet file by its name.
pub(crate) fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("parquet"))
}

fn refused<T>(what: String) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// The folder of a spec; for a spec without a file, the working directory.
pub(crate) struct SpecFolder<'a> {
    directory: Option<&'a Path>,
    sum: RefCell<Xxh3>,
    read: RefCell<Vec<PathBuf>>,
}

impl<'a> SpecFolder<'a> {
    pub(crate) fn new(directory: Option<&'a Path>, text: &str) -> Self {
        let mut sum = Xxh3::new();
        sum.update(text.as_bytes());
        Self { directory, sum: RefCell::new(sum), read: RefCell::default() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.map_or_else(|| PathBuf::from(name), |directory| directory.join(name))
    }

    /// Reads the text file `name`, a regular file in the folder or below it.
    pub(crate) fn read(&self, name: &str) -> io::Result<String> {
        let (path, bytes) = self.read_bytes(name)?;
        if is_parquet(&path) {
            let csv = path.with_extension("csv");
            let command = format!("sawmill convert '{}' --out '{}'", path.display(), csv.display());
            return refused(format!(
                "it is a Parquet file, not text; name the CSV file that `{command}` makes"
            ));
        }
        String::from_utf8(bytes).or_else(|_| refused("it is not UTF-8".to_owned()))
    }

    /// Reads the file `name`, and tells where it lies.
    pub(crate) fn read_bytes(&self, name: &str) -> io::Result<(PathBuf, Vec<u8>)> {
        let (path, bytes) = self.read_confined(name)?;
        self.read.borrow_mut().push(self.path(name));
        let mut sum = self.sum.borrow_mut();
        sum.update(&(bytes.len() as u64).to_le_bytes());
        sum.update(&bytes);
        Ok((path, bytes))
    }

    fn read_confined(&self, name: &str) -> io::Result<(PathBuf, Vec<u8>)> {
        let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(name).components().all(is_inside) {
            return refused("the name leads out of the folder of the spec".to_owned());
        }
        let folder = self.folder()?;
        let path = folder.join(name).canonicalize()?;
        if !path.starts_with(&folder) {
            return refused("a link leads out of the folder of the spec".to_owned());
        }
        // Devices and pipes may have no end, and wait when they are opened.
        if !path.metadata()?.is_file() {
            return refused("it is not a regular file".to_owned());
        }
        let mut bytes = Vec::new();
        let read = self.open(&path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        if read as u64 > MAX_BYTES {
            return refused(format!("it has more than {} MiB", MAX_BYTES >> 20));
        }
        Ok((path, bytes))
    }

    /// Opens a file of the folder, whatever has taken its name in between.
    pub(crate) fn open(&self, path: &Path) -> io::Result<File> {
        Confinement::Folder(self.folder()?).open(path)
    }

    /// The folder without links in its name. A spec without a parent lies in the working directory.
    fn folder(&self) -> io::Result<PathBuf> {
        let named = self.directory.filter(|directory| !directory.as_os_str().is_empty());
        named.unwrap_or(Path::new(".")).canonicalize()
    }

    /// The files that were read.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.read.borrow().clone()
    }

    /// The XXH3-128 of the spec and of all files read for it, each after its length.
    pub(crate) fn sum(&self) -> u128 {
        self.sum.borrow().digest128()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn only_regular_files_in_the_folder_are_read() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir_all(at("specs/lists")).unwrap();
        std::fs::write(at("secret"), "secret").unwrap();
        std::fs::write(at("specs/lists/cities"), "Graz").unwrap();
        std::fs::write(at("specs/places.Parquet"), "PAR1").unwrap();
        std::os::unix::fs::symlink("../secret", at("specs/link")).unwrap();
        std::os::unix::fs::symlink("lists/cities", at("specs/inner")).unwrap();
        let directory = at("specs");
        let folder = SpecFolder::new(Some(&directory), "");
        for name in ["lists/cities", "./lists/cities", "inner"] {
            assert_eq!(folder.read(name).unwrap(), "Graz", "{name}");
        }
        let secret = at("secret");
        let absolute = secret.to_str().unwrap();
        for (name, reason) in [
            ("../secret", "out of the folder"),
            ("lists/../../secret", "out of the folder"),
            (absolute, "out of the folder"),
            ("/dev/zero", "out of the folder"),
            ("link", "a link leads out"),
            ("lists", "not a regular file"),
            ("places.Parquet", "places.Parquet' --out '"),
        ] {
            let error = folder.read(name).unwrap_err().to_string();
            assert!(error.contains(reason), "{name}: {error}");
        }
    }
}
