//! Objects in stores: found by name, prefix or pattern, and opened.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sawmill_store::{Kind, ObjectReader, ObjectUrl, StoreOptions, Stores};

use super::StoreArgs;
use crate::arguments::paths::{Wanted, keys, nothing_in};
use crate::arguments::text::has_text_extension;
use crate::error::Error;

/// The stores that a command line names; none are prepared if it names paths alone.
#[derive(Debug, Default)]
pub(crate) struct Objects(Option<Stores>);

impl Objects {
    /// Prepares for stores if there is a URL.
    pub(crate) fn of(
        args: &StoreArgs,
        url: Option<&ObjectUrl>,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let options = StoreOptions::parse(&args.store)?;
        match url {
            None => Ok(Self(None)),
            Some(_) => Ok(Self(Some(Stores::new(options, Arc::clone(cancel))?))),
        }
    }

    /// The objects that a URL names: itself, those below it, or those that match it.
    pub(crate) fn named(&self, url: &ObjectUrl, wanted: Wanted) -> Result<Vec<ObjectUrl>, Error> {
        if url.scheme().is_web() {
            return Ok(vec![url.clone()]);
        }
        let stores = self.stores()?;
        let key = url.key();
        let is_pattern = keys::is_pattern(key);
        let is_text = |key: &str| wanted == Wanted::ParquetOrText && has_text_extension(Path::new(key));
        if !is_pattern && (keys::is_parquet(key) || is_text(key)) {
            return Ok(vec![url.clone()]);
        }
        let prefix = if is_pattern { keys::literal_folder(key) } else { key };
        let listed = stores.list(&url.sibling(prefix))?;
        let mut left_out = 0;
        let mut found: Vec<ObjectUrl> = listed
            .iter()
            .map(|object| object.url())
            .filter(|found| match is_pattern {
                true => keys::matches(key, found.key()),
                false => keys::is_below(key, found.key(), keys::is_parquet, &mut left_out),
            })
            .cloned()
            .collect();
        if found.is_empty() && !is_pattern {
            let below = |url: &&ObjectUrl| keys::is_below(key, url.key(), is_text, &mut left_out);
            found = listed.iter().map(|object| object.url()).filter(below).cloned().collect();
        }
        match (found.is_empty(), is_pattern) {
            (false, _) => Ok(found),
            (true, true) => {
                let advice =
                    "check the pattern; it skips names that start with _ or . unless it starts so itself";
                Err(Error::failure("no objects match", url.to_string(), advice))
            }
            // It may be the name of an object after all.
            (true, false) if listed.is_empty() && !key.is_empty() && !key.ends_with('/') => {
                Ok(vec![url.clone()])
            }
            (true, false) => Err(nothing_in(&url.to_string(), left_out)),
        }
    }

    /// Opens an object and reads its last bytes.
    pub(crate) fn open(&self, url: &ObjectUrl, tail: u64) -> Result<ObjectReader, sawmill_store::Error> {
        self.stores()?.open(url, tail)
    }

    fn stores(&self) -> Result<&Stores, sawmill_store::Error> {
        // They are, whenever a URL was named.
        let unprepared = || sawmill_store::Error::new(Kind::Usage, "the stores are not prepared");
        self.0.as_ref().ok_or_else(unprepared)
    }
}
