//! Where the converted rows go: a file or an object, whole or not at all.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sawmill_source::Source;
use sawmill_store::{Location, ObjectUrl, WholeFile, is_stream};

use super::ConvertArgs;
use crate::arguments::paths::stores_of;
use crate::arguments::stores::{Objects, objects::ObjectOutput};
use crate::error::Error;
use crate::r#gen::formats::failed;
use crate::r#gen::formats::files::OpenFile;

/// An output that was begun. Dropped before it is finished, it leaves nothing.
pub(super) enum Out {
    File(WholeFile),
    /// The object's stores have to live as long.
    Object(Box<ObjectOutput>, Objects),
}

impl Out {
    /// Begins the output, unless something is in its place.
    pub(super) fn begin(
        args: &ConvertArgs,
        source: &dyn Source,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        match Location::of(args.out())? {
            Location::Path(path) => Self::file(&path, args.overwrite, source).map(Self::File),
            Location::Object(url) => Self::object(&url, args, source, cancel),
        }
    }

    fn object(
        url: &ObjectUrl,
        args: &ConvertArgs,
        source: &dyn Source,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let shown = url.to_string();
        if objects_of(source).any(|input| input.is_same(url)) {
            return Err(Error::usage("the output is one of the inputs", shown, "give another name"));
        }
        let objects = stores_of(&args.out, &args.objects.stores, cancel)?;
        // Compressed text may have fewer bytes than the rows.
        let about = source.files().iter().map(|file| file.bytes).sum::<u64>().saturating_mul(4);
        let object = objects.create(url, args.overwrite, about)?;
        // Its upload fails at the end if the object appears after this.
        if !args.overwrite && objects.exists(url)? {
            return Err(Error::usage("the object exists already", shown, "--overwrite replaces it"));
        }
        Ok(Self::Object(Box::new(object), objects))
    }

    fn file(out: &Path, overwrite: bool, source: &dyn Source) -> Result<WholeFile, Error> {
        check_file(out, overwrite, source)?;
        WholeFile::remove_abandoned(out).map_err(|error| failed("reading the directory", out, &error))?;
        let file = WholeFile::create(out).map_err(|error| failed("writing", out, &error))?;
        Ok(if overwrite { file } else { file.new_only() })
    }

    /// Completes the output: it is in its place when this returns.
    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Self::File(file) => file.finish(),
            Self::Object(object, _objects) => Ok(object.finish()?),
        }
    }
}

/// The objects of a source.
pub(super) fn objects_of(source: &dyn Source) -> impl Iterator<Item = ObjectUrl> {
    source.files().iter().filter_map(|file| match Location::of(Path::new(&file.name)) {
        Ok(Location::Object(url)) => Some(url),
        _ => None,
    })
}

/// Rejects an output that cannot become a file.
pub(super) fn check_file(out: &Path, overwrite: bool, source: &dyn Source) -> Result<(), Error> {
    let shown = out.display().to_string();
    if out == Path::new("-") || is_stream(out) {
        return Ok(());
    }
    if out.is_dir() {
        return Err(Error::usage("the output is a directory", shown, "give the name of a file"));
    }
    if let Ok(canonical) = out.canonicalize()
        && source.files().iter().any(|file| file.name == sawmill_store::path_name(&canonical))
    {
        return Err(Error::usage("the output is one of the inputs", shown, "give another name"));
    }
    if out.symlink_metadata().is_ok() && !overwrite {
        return Err(Error::usage("the file exists already", shown, "--overwrite replaces it"));
    }
    Ok(())
}

impl From<Out> for OpenFile {
    fn from(out: Out) -> Self {
        match out {
            Out::File(file) => Self::Whole(file),
            Out::Object(object, objects) => Self::Object(object, objects),
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Object(object, _) => object.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Object(..) => Ok(()),
        }
    }
}
