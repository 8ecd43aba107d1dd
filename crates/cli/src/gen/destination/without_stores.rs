//! A build without the feature `stores`: URLs and their options are errors that say how to get it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sawmill_generator::StoreOutput;
use sawmill_store::ObjectUrl;

use crate::arguments::stores::StoreArgs;
use crate::error::Error;
use crate::r#gen::destination::UploadArgs;

pub(super) fn output(
    url: &ObjectUrl,
    _: Option<(ObjectUrl, String)>,
    _: &UploadArgs,
    _: bool,
    _: &Arc<AtomicBool>,
) -> Result<StoreOutput, Error> {
    Err(Error::not_built(url.to_string(), "stores"))
}

pub(super) fn refuse_options(args: &StoreArgs) -> Result<(), Error> {
    match args.store.first() {
        // The value may be a secret.
        Some(_) => Err(Error::not_built("--store".to_owned(), "stores")),
        None => Ok(()),
    }
}

/// Cleans a folder of a store.
pub(in crate::r#gen) fn clean(
    url: &ObjectUrl,
    _: &crate::r#gen::clean::CleanArgs,
    _: &Arc<AtomicBool>,
) -> Result<crate::r#gen::clean::Cleaned, Error> {
    Err(Error::not_built(url.to_string(), "stores"))
}
