//! Objects in stores: found by name, prefix or pattern, and opened.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use sawmill_generator::is_manifest;
use sawmill_store::found_files::{self, FoundKeys};
use sawmill_store::{Kind, ObjectReader, ObjectUrl, ObjectWriter, StoreOptions, Stores, UploadLimits};

use super::StoreArgs;
use crate::arguments::paths::{ICEBERG, Wanted, nothing_in, refuse_table, refuse_unfinished};
use crate::error::{Error, Result};
use crate::interrupt;

/// The stores that a command line names; none are prepared if it names paths alone.
#[derive(Debug, Default)]
pub(crate) struct Objects(Option<Stores>);

impl Objects {
    /// Prepares for stores if there is a URL.
    pub(crate) fn new(args: &StoreArgs, url: Option<&ObjectUrl>) -> Result<Self> {
        let options = StoreOptions::parse(&args.store)?;
        match url {
            None => Ok(Self(None)),
            Some(_) => Ok(Self(Some(Stores::new(options, Arc::clone(interrupt::flag()))?))),
        }
    }

    /// The objects that a URL names: itself, those below it, or those that match it.
    pub(crate) fn named(&self, url: &ObjectUrl, wanted: Wanted) -> Result<Vec<ObjectUrl>> {
        if url.scheme().is_web() {
            return Ok(vec![url.clone()]);
        }
        let stores = self.stores()?;
        let key = url.key();
        let is_pattern = found_files::is_pattern(Path::new(key));
        if !is_pattern && wanted.is_object(key) {
            return Ok(vec![url.clone()]);
        }
        let prefix = if is_pattern { found_files::literal_folder(key) } else { key };
        let listed = stores.list(&url.sibling(prefix))?;
        let all = listed.iter().map(|object| object.url().key());
        // An object may have the name of a pattern.
        if is_pattern && all.clone().any(|found| found == key) {
            return Ok(vec![url.clone()]);
        }
        if !is_pattern && wanted == Wanted::ParquetOrText {
            let folder = key.trim_end_matches('/');
            let below = |key: &str, name: &str| {
                let rest = if folder.is_empty() { Some(key) } else { key.strip_prefix(folder) };
                rest.is_some_and(|rest| rest.trim_start_matches('/').starts_with(name))
            };
            let is_delta = all.clone().any(|key| below(key, "_delta_log/"));
            let is_iceberg = all.clone().any(|key| below(key, "metadata/") && key.ends_with(ICEBERG));
            refuse_table(&url.to_string(), is_delta, is_iceberg)?;
            let name = |key: &str| key.strip_prefix(folder).unwrap_or(key).trim_start_matches('/').to_owned();
            for key in all.clone().filter(|key| is_manifest(&name(key)) && !name(key).contains('/')) {
                let mut manifest = Vec::new();
                stores.copy(&url.sibling(key), &mut manifest)?;
                refuse_unfinished(&url.to_string(), &manifest)?;
            }
        }
        let found = if is_pattern { FoundKeys::matching(key, all) } else { FoundKeys::below(key, all) };
        let (left_out, files) = (found.left_out, wanted.among(found));
        stores.refuse_unfinished(&url.sibling(prefix), &listed, &files)?;
        match (files.is_empty(), is_pattern) {
            (false, _) => Ok(files.into_iter().map(|key| url.sibling(key)).collect()),
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

    /// The folder of a Delta table.
    pub(crate) fn table(
        &self,
        url: &ObjectUrl,
    ) -> Result<Box<dyn sawmill_delta::TableFolder>, sawmill_store::Error> {
        if url.scheme().is_web() {
            return Err(sawmill_store::Error::new(Kind::Usage, "a web server does not list a table's log")
                .at(url.to_string())
                .advise("copy the table to a directory, or name files of it"));
        }
        let folder = self.stores()?.folder(url, UploadLimits::default(), false)?;
        Ok(Box::new(sawmill_delta::StoreTable(folder)))
    }

    /// Opens an object and reads its last bytes.
    pub(crate) fn open(&self, url: &ObjectUrl, tail: u64) -> Result<ObjectReader, sawmill_store::Error> {
        self.stores()?.open(url, tail)
    }

    /// Begins an object, which replaces another one only if `replaces` is set. The first bytes may say about
    /// how many follow.
    pub(crate) fn create(
        &self,
        url: &ObjectUrl,
        replaces: bool,
        about: u64,
    ) -> Result<ObjectOutput, sawmill_store::Error> {
        Ok(ObjectOutput { writer: self.stores()?.create(url, replaces)?, about })
    }

    /// The stores.
    pub(crate) fn stores(&self) -> Result<&Stores, sawmill_store::Error> {
        // They are, whenever a URL was named.
        let unprepared = || sawmill_store::Error::new(Kind::Usage, "the stores are not prepared");
        self.0.as_ref().ok_or_else(unprepared)
    }
}

/// An object that is being written. It appears when it is finished; dropped before, it never does.
#[derive(Debug)]
pub(crate) struct ObjectOutput {
    writer: ObjectWriter,
    /// About how many bytes it will have.
    about: u64,
}

impl ObjectOutput {
    /// Completes the object.
    pub(crate) fn finish(self) -> Result<(), sawmill_store::Error> {
        self.writer.finish().map(drop)
    }
}

impl Write for ObjectOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(&[bytes], self.about)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
