//! The folder that files must be in, whatever a table's log, a list or a link says.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::error::{Error, Kind};
use crate::location::{Location, ObjectUrl};

/// A folder that no file may be outside of.
#[derive(Clone, Debug)]
pub enum Confinement {
    /// A folder of this machine, without links in its name.
    Folder(PathBuf),
    /// A folder of a store, or a whole bucket.
    Objects(ObjectUrl),
}

impl Confinement {
    /// Confines files to a folder.
    ///
    /// # Errors
    /// It is not a folder of this machine, or the URL is not valid.
    pub fn to(folder: &Path) -> Result<Self, Error> {
        match Location::new(folder)? {
            Location::Object(url) => Ok(Self::Objects(url)),
            Location::Path(path) => match path.canonicalize() {
                Ok(path) if path.is_dir() => Ok(Self::Folder(path)),
                _ => Err(Error::new(Kind::Usage, "files can only be confined to a folder")
                    .at(path.display().to_string())
                    .advise("name a folder that exists, or a URL")),
            },
        }
    }

    /// Confines the files that the process opens with [`open_input`]. The first call counts.
    pub fn confine_inputs(&self) {
        let _ = OF_INPUTS.set(self.clone());
    }

    /// Opens a file of this machine for reading.
    ///
    /// # Errors
    /// It cannot be opened, or is outside of the folder, by its name or through a link.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        match self {
            Self::Folder(folder) => open_beneath(folder, path, true),
            Self::Objects(url) => Err(outside(Path::new(&url.to_string()))),
        }
    }

    /// Refuses a file outside of the folder.
    ///
    /// # Errors
    /// It is outside, by its name or through a link.
    pub fn check(&self, place: &Location) -> Result<(), Error> {
        let is_inside = match (self, place) {
            (Self::Objects(folder), Location::Object(url)) => url.is_below(folder),
            // One that cannot be opened is inside, if its name is: opening it is the error to report.
            (Self::Folder(folder), Location::Path(path)) => open_beneath(folder, path, false)
                .map_or_else(|error| error.raw_os_error().is_some(), |_| true),
            _ => false,
        };
        if is_inside {
            return Ok(());
        }
        let folder = match self {
            Self::Folder(path) => path.display().to_string(),
            Self::Objects(url) => url.to_string(),
        };
        Err(Error::new(Kind::Denied, format!("the file is outside of {folder}"))
            .at(place.to_string())
            .advise("if whoever wrote the table, the list or the link is trusted, name a folder with --confine that has it"))
    }
}

/// The folder that all input files of the process must be in, if there is one.
static OF_INPUTS: OnceLock<Confinement> = OnceLock::new();

/// Opens an input file for reading, within the folder that [`Confinement::confine_inputs`] was called for: the file that
/// is read is the one that is checked, whatever takes its name in between.
///
/// # Errors
/// It cannot be opened, or is outside of the folder.
pub fn open_input(path: &Path) -> io::Result<File> {
    OF_INPUTS.get().map_or_else(|| File::open(path), |confinement| confinement.open(path))
}

/// Whether [`open_input`] opens files in one folder alone.
pub fn are_inputs_confined() -> bool {
    OF_INPUTS.get().is_some()
}

fn outside(folder: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("the file is outside of {}", folder.display()))
}

/// Opens a file in a folder, for reading, or only for its name.
fn open_beneath(folder: &Path, path: &Path, reads: bool) -> io::Result<File> {
    let absolute = std::path::absolute(path)?;
    let parent = absolute.parent().and_then(|parent| parent.canonicalize().ok());
    let resolved = parent.and_then(|parent| Some(parent.join(absolute.file_name()?)));
    let within = |path: &Path| path.strip_prefix(folder).map(Path::to_owned).ok();
    // The name of the folder itself may lead through links.
    let below = within(&absolute).or_else(|| within(&resolved?)).ok_or_else(|| outside(folder))?;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
        use rustix::io::Errno;
        let directory = OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let how = if reads { OFlags::RDONLY } else { OFlags::PATH } | OFlags::CLOEXEC;
        let opened = openat(CWD, folder, directory, Mode::empty()).and_then(|folder| {
            let below = if below.as_os_str().is_empty() { Path::new(".") } else { &below };
            openat2(folder, below, how, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS)
        });
        match opened {
            Ok(file) => return Ok(file.into()),
            Err(Errno::XDEV | Errno::LOOP) => return Err(outside(folder)),
            // The kernel, or what stands before it, does not have the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
    }
    match path.canonicalize()?.starts_with(folder) {
        true => File::open(path),
        false => Err(outside(folder)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_inside_by_its_name_and_through_all_links() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("table/day=1")).unwrap();
        fs::write(at("table/day=1/a"), "").unwrap();
        fs::write(at("secret"), "").unwrap();
        symlink("../secret", at("table/out")).unwrap();
        symlink(at("secret"), at("table/absolute")).unwrap();
        symlink("day=1/a", at("table/in")).unwrap();
        symlink("table", at("link")).unwrap();
        for folder in ["table", "link"] {
            let confined = Confinement::to(&at(folder)).unwrap();
            let is_inside = |name: &str| confined.check(&Location::Path(at(name))).is_ok();
            for inside in ["table/day=1/a", "table/day=1/../in", "link/day=1/a", "table/in", "table/none"] {
                assert!(is_inside(inside), "{inside}");
                assert_eq!(confined.open(&at(inside)).is_ok(), inside != "table/none", "{inside}");
            }
            for outside in ["secret", "table/../secret", "table/out", "table/absolute", "link/out", "table2"]
            {
                assert!(!is_inside(outside) && confined.open(&at(outside)).is_err(), "{outside}");
            }
            // What takes the name of a checked file is not read.
            fs::write(at("table/swapped"), "").unwrap();
            assert!(is_inside("table/swapped") && confined.open(&at("table/swapped")).is_ok());
            fs::remove_file(at("table/swapped")).unwrap();
            symlink("../secret", at("table/swapped")).unwrap();
            let error = confined.open(&at("table/swapped")).unwrap_err().to_string();
            assert!(error.contains("is outside of"), "{error}");
            fs::remove_file(at("table/swapped")).unwrap();
            let object = Location::new(Path::new("s3://b/x")).unwrap();
            assert!(confined.check(&object).unwrap_err().to_string().contains("--confine"));
        }
        assert!(Confinement::to(&at("secret")).is_err() && Confinement::to(&at("none")).is_err());
    }

    #[test]
    fn an_object_is_inside_its_bucket_or_folder() {
        let check = |folder: &str, place: &str| {
            let place = Location::new(Path::new(place)).unwrap();
            Confinement::to(Path::new(folder)).unwrap().check(&place).is_ok()
        };
        assert!(check("s3://b", "s3a://b/x") && check("s3://b/t/", "s3://b/t/x/y"));
        assert!(
            !check("s3://b/t", "s3://b/x") && !check("s3://b", "s3://c/x") && !check("s3://b", "/etc/passwd")
        );
    }
}
