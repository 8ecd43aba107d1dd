//! Objects of stores: opened, and their footers read.
//!
//! Their addresses and secrets come from the environment of each process, such as `AWS_ACCESS_KEY_ID` and
//! `AWS_ENDPOINT_URL`, never from a plan.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

use datafusion::error::Result;
use sawmill_footer::{Footer, Options, RangeReader};
use sawmill_store::{Location, ObjectReader, ObjectUrl, StoreOptions, Stores};

use crate::error::external;

/// Bytes that are read first: most footers are shorter.
pub(crate) const TAIL: u64 = 64 << 10;

/// Objects that a partition reads at a time: a store answers after milliseconds.
const REQUESTS: usize = 16;

/// The stores of this process.
///
/// # Errors
/// The system has no threads left.
pub(crate) fn stores() -> Result<&'static Arc<Stores>> {
    static STORES: LazyLock<std::result::Result<Arc<Stores>, sawmill_store::Error>> =
        LazyLock::new(|| Stores::new(StoreOptions::default(), Arc::default()).map(Arc::new));
    STORES.as_ref().map_err(|error| external(error.clone()))
}

/// The URL, if a name is not one of this machine.
///
/// # Errors
/// A URL of another scheme.
pub(crate) fn url_of(name: &str) -> Result<Option<ObjectUrl>> {
    match Location::new(Path::new(name)).map_err(external)? {
        Location::Object(url) => Ok(Some(url)),
        Location::Path(_) => Ok(None),
    }
}

/// An object as footers read it.
pub(crate) struct ObjectBytes(pub ObjectReader);

impl RangeReader for ObjectBytes {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.object().size())
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(offset, buffer)
    }
}

/// Opens an object.
///
/// # Errors
/// The object does not exist, or the store refuses the request or cannot be reached.
pub(crate) fn open(url: &ObjectUrl) -> Result<ObjectBytes> {
    Ok(ObjectBytes(stores()?.open(url, TAIL).map_err(external)?))
}

/// The footer of a file or an object.
///
/// # Errors
/// The file cannot be read, or is not a Parquet file.
pub(crate) fn footer(name: &str, options: &Options) -> Result<Footer> {
    let Some(url) = url_of(name)? else { return Footer::open_with(name, options).map_err(external) };
    let object = open(&url)?;
    let footer = Footer::read(&object, name, options);
    // The store's error says more than the decoder's.
    match object.0.fault().cloned() {
        Some(fault) => Err(external(fault)),
        None => footer.map_err(external),
    }
}

/// The footers of files, or of objects, with their places, in any order; until `take` breaks.
pub(crate) fn footers(
    names: &[&str],
    options: &Options,
    take: impl Fn(usize, Result<Footer>) -> ControlFlow<()> + Sync,
) {
    // All names come from one pattern.
    if !names.first().is_some_and(|name| url_of(name).is_ok_and(|url| url.is_some())) {
        return Footer::open_many(names, options, |place, footer| take(place, footer.map_err(external)));
    }
    let (next, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        while !ended.load(Relaxed) {
            let place = next.fetch_add(1, Relaxed);
            let Some(name) = names.get(place) else { break };
            if take(place, footer(name, options)).is_break() {
                ended.store(true, Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..REQUESTS.min(names.len()) {
            // If a thread cannot be started, the others do its share.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
}
