//! Where `sawmill gen` writes to: a path, a stream, or a folder of a store.

#[cfg_attr(not(feature = "full"), path = "../demo_build/store_output.rs")]
pub(super) mod store;

use std::path::Path;

use clap::Args;
use sawmill_generator::Output;
use sawmill_store::{Location, ObjectUrl, Scheme};

use crate::arguments::size_arg;
use crate::arguments::stores::StoreArgs;
use crate::error::{Error, Result};
use crate::r#gen::GenArgs;
use crate::r#gen::format::Format;

/// How to write to stores.
#[derive(Args, Clone, Debug)]
pub(crate) struct UploadArgs {
    #[command(flatten)]
    pub stores: StoreArgs,
    /// The bytes of a part of an upload. Each object that is being written holds one in memory. Objects that
    /// would have more than 10,000 parts have larger ones.
    #[arg(long, value_name = "BYTES", value_parser = size_arg::bytes, allow_hyphen_values = true,
        default_value = "8MiB", help_heading = "Stores")]
    pub upload_part: u64,
    /// Parts that are sent at the same time.
    #[arg(long, value_name = "N", default_value_t = 8, help_heading = "Stores",
        value_parser = clap::value_parser!(u16).range(1..))]
    pub uploads: u16,
}

/// The output of a command.
pub(super) fn output(args: &GenArgs) -> Result<Output> {
    match location(&args.out)? {
        Location::Path(path) => {
            store::refuse_options(&args.uploads.stores)?;
            let output = Output::from_path(&path);
            if args.format == Format::Parquet && output == Output::Directory(path.clone()) && !path.is_dir() {
                refuse_other_extension(&args.out)?;
            }
            // Manifests and unfinished files name the file as text.
            if matches!(output, Output::File(_))
                && path.file_name().is_some_and(|name| name.to_str().is_none())
            {
                let shown = path.display().to_string();
                return Err(Error::usage("the name of the file is not UTF-8", shown, "give another name"));
            }
            Ok(output)
        }
        Location::Object(url) => {
            let replaces = args.layout.overwrite;
            let file = single_object(&url);
            store::output(&url, file, &args.uploads, replaces).map(Output::Store)
        }
    }
}

/// Rejects the name of a file in another format, which would become a directory.
fn refuse_other_extension(out: &Path) -> Result<()> {
    let shown = out.display().to_string();
    let extension = out.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let format = match extension.as_deref() {
        _ if shown.ends_with('/') => return Ok(()),
        Some("csv") => "csv",
        Some("ndjson" | "jsonl" | "json") => "ndjson",
        Some("arrow" | "ipc" | "feather") => "arrow",
        _ => return Ok(()),
    };
    let advice = format!("add --as {format}, or end the name in .parquet, or in / for a directory");
    Err(Error::usage(format!("a name for {format}, but the format is parquet"), shown, advice))
}

/// The same output for one run of a benchmark: a path as it is, but a folder or object called `run` in a store.
pub(crate) fn output_of_run(args: &GenArgs, run: &str) -> Result<Output> {
    match location(&args.out)? {
        Location::Path(_) => output(args),
        Location::Object(url) => {
            let single = single_object(&url);
            let folder = single.as_ref().map_or(&url, |(folder, _)| folder);
            let key = format!("{}/{run}", folder.key().trim_end_matches('/'));
            let of_run = folder.sibling(key.trim_start_matches('/'));
            let file = single.map(|(_, name)| (of_run.clone(), name));
            store::output(&of_run, file, &args.uploads, false).map(Output::Store)
        }
    }
}

/// The place that a user names.
pub(super) fn location(path: &Path) -> Result<Location> {
    Location::new(path).map_err(|error| {
        let text = path.to_string_lossy();
        let Some((scheme, _)) = text.split_once("://") else { return error.into() };
        if Scheme::named(scheme).is_some() || scheme.eq_ignore_ascii_case("file") {
            return error.into();
        }
        // The rest may contain a password.
        let advice = "write to a directory, or to a URL with file, s3, gs, az or abfss";
        Error::usage(format!("files cannot be written to {scheme}://"), format!("{scheme}://..."), advice)
    })
}

/// Whether the place that a user names is not a path.
pub(super) fn is_url(path: &Path) -> Result<bool> {
    Ok(location(path)? != Location::Path(path.to_owned()))
}

/// The folder of a single object, and its name; `None` if the URL is a folder's.
pub(super) fn single_object(url: &ObjectUrl) -> Option<(ObjectUrl, String)> {
    let key = url.key();
    if !key.ends_with(".parquet") {
        return None;
    }
    let (folder, name) = key.rsplit_once('/').unwrap_or(("", key));
    Some((url.sibling(folder), name.to_owned()))
}
