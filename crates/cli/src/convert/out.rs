//! Where the converted rows go: a file or an object, whole or not at all.

use std::path::Path;

use sawmill_source::Source;
use sawmill_store::{Location, ObjectUrl, is_stream};

use super::ConvertArgs;
use crate::arguments::paths::output::{check_free, is_input, whole_file};
use crate::arguments::paths::stores_of;
use crate::error::Error;
use crate::r#gen::formats::files::OpenFile;

/// Begins the output, unless something is in its place.
pub(super) fn begin(args: &ConvertArgs, source: &dyn Source) -> Result<OpenFile, Error> {
    match Location::new(args.out())? {
        Location::Path(path) => file(&path, args.overwrite, source),
        Location::Object(url) => object(&url, args, source),
    }
}

fn object(url: &ObjectUrl, args: &ConvertArgs, source: &dyn Source) -> Result<OpenFile, Error> {
    let shown = url.to_string();
    if objects_of(source).any(|input| input.is_same(url)) {
        return Err(Error::usage("the output is one of the inputs", shown, "give another name"));
    }
    let objects = stores_of(&args.out, &args.objects.stores)?;
    // Through a web server, an object has another URL, but the same tag.
    if args.overwrite
        && objects_of(source).any(|input| input.scheme().is_web())
        && let Some(stamp) = objects.open(url, 1).ok().and_then(|there| there.object().stamp())
        && source.files().iter().any(|input| input.stamp.as_ref() == Some(&stamp))
    {
        let what = "the output is one of the inputs, or a copy of it";
        return Err(Error::usage(what, shown, "give another name"));
    }
    // Compressed text may have fewer bytes than the rows.
    let about = source.files().iter().map(|file| file.bytes).sum::<u64>().saturating_mul(4);
    let object = objects.create(url, args.overwrite, about)?;
    // Its upload fails at the end if the object appears after this.
    if !args.overwrite && objects.stores()?.exists(url)? {
        return Err(Error::usage("the object exists already", shown, "--overwrite replaces it"));
    }
    Ok(OpenFile::Object(Box::new(object), objects))
}

fn file(out: &Path, overwrite: bool, source: &dyn Source) -> Result<OpenFile, Error> {
    check_file(out, overwrite, source)?;
    let file = whole_file(out, overwrite).map_err(|error| Error::of_output("writing", out, &error))?;
    Ok(OpenFile::Whole(file))
}

/// The objects of a source.
pub(super) fn objects_of(source: &dyn Source) -> impl Iterator<Item = ObjectUrl> {
    source.files().iter().filter_map(|file| match Location::new(Path::new(&file.name)) {
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
    match is_input(out, source) {
        true => Err(Error::usage("the output is one of the inputs", shown, "give another name")),
        false => check_free(out, overwrite, shown),
    }
}
