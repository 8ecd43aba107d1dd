//! All stores of a command: their clients are made when they are first needed.

use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::{Error, Kind};
use crate::found_files::{UNFINISHED, refuse_unfinished};
use crate::location::{ObjectUrl, Scheme};
use crate::objects::{Object, ObjectReader, Traffic};
use crate::remote::build::StoreOptions;
use crate::remote::build::{self, Built};
use crate::remote::client::Client;
use crate::remote::copying;
use crate::remote::listing;
use crate::remote::writing::simulated::NewClient;
use crate::remote::writing::{ObjectFolder, ObjectWriter, UploadLimits, WholeFolder};

/// Identifies a client: the kind of store, its bucket or host, the query that signs requests to a web server,
/// and whether uploads may replace objects.
type StoreKey = (Scheme, String, Option<String>, bool);

/// All stores of a command, which share options, threads and counts. Its objects can be read while it lives.
pub struct Stores {
    options: StoreOptions,
    threads: Threads,
    cancel: Arc<AtomicBool>,
    traffic: Arc<Traffic>,
    clients: Mutex<HashMap<StoreKey, Client>>,
    simulated: Option<NewClient>,
}

/// The runtime. Nothing waits for its threads: a server can keep them busy.
struct Threads {
    handle: Handle,
    runtime: Option<Runtime>,
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Stores {
    /// Prepares for stores with these options. Waiting for a store ends when `cancel` is set.
    ///
    /// # Errors
    ///
    /// The system has no threads left.
    pub fn new(options: StoreOptions, cancel: Arc<AtomicBool>) -> Result<Self, Error> {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).thread_name("store").enable_io().enable_time().build();
        let failed = |error| Error::new(Kind::Unavailable, format!("starting threads failed: {error}"));
        let runtime = runtime.map_err(failed)?;
        Ok(Self {
            options,
            threads: Threads { handle: runtime.handle().clone(), runtime: Some(runtime) },
            cancel,
            traffic: Arc::default(),
            clients: Mutex::default(),
            simulated: None,
        })
    }

    /// Like [`new`](Self::new), with simulated clients.
    ///
    /// # Errors
    ///
    /// The system has no threads left.
    #[doc(hidden)]
    pub fn simulated(client: NewClient, cancel: Arc<AtomicBool>) -> Result<Self, Error> {
        Ok(Self { simulated: Some(client), ..Self::new(StoreOptions::default(), cancel)? })
    }

    /// Opens an object: reads its last `tail` bytes, and learns its size and version from the same answer.
    ///
    /// # Errors
    ///
    /// The object does not exist, or the store refuses the request or cannot be reached.
    pub fn open(&self, url: &ObjectUrl, tail: u64) -> Result<ObjectReader, Error> {
        let (object, end) = self.client(url)?.open(url, tail.max(1))?;
        Ok(ObjectReader::new(object, end))
    }

    /// Whether the object exists.
    ///
    /// # Errors
    ///
    /// The store refuses the request, cannot be reached, or does not say.
    pub fn exists(&self, url: &ObjectUrl) -> Result<bool, Error> {
        // Unlike an answer without a body, this one names the problem.
        match self.open(url, 1) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == Kind::NoRanges => Ok(true),
            Err(error) if error.kind() == Kind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes all bytes of an object to `to`, with several requests under way; with a single one if a web
    /// server has no ranges.
    ///
    /// # Errors
    ///
    /// The object does not exist or changes, the store refuses or cannot be reached, or `to` fails.
    pub fn copy(&self, url: &ObjectUrl, to: &mut dyn Write) -> Result<(), Error> {
        copying::copy(&self.client(url)?, url, to)
    }

    /// Begins an object, which replaces another one only if `replaces` is set.
    ///
    /// # Errors
    ///
    /// A web server; the name or the store's settings are not valid.
    pub fn create(&self, url: &ObjectUrl, replaces: bool) -> Result<ObjectWriter, Error> {
        let (folder, name) = url.key().rsplit_once('/').unwrap_or(("", url.key()));
        self.folder(&url.sibling(folder), UploadLimits::default(), replaces)?.create(name)
    }

    /// Returns the objects below a prefix, in the order of their names.
    ///
    /// # Errors
    ///
    /// The store cannot list, refuses, or cannot be reached.
    pub fn list(&self, prefix: &ObjectUrl) -> Result<Vec<Object>, Error> {
        listing::list(&self.client(prefix)?, prefix)
    }

    /// Makes sure that no run into a folder of the `selected` objects is unfinished. `folder` has all `listed` ones, and
    /// may be a part of the run's folder, such as `trips/day=2024-01-05`.
    ///
    /// # Errors
    ///
    /// A run is unfinished: some objects may be missing, others may be an earlier run's.
    pub fn refuse_unfinished(
        &self,
        folder: &ObjectUrl,
        listed: &[Object],
        selected: &[&str],
    ) -> Result<(), Error> {
        let (mut marks, mut at) = (Vec::new(), folder.key().trim_end_matches('/'));
        while at.rsplit('/').next().is_some_and(|name| name.contains('=')) {
            at = at.rsplit_once('/').map_or("", |(above, _)| above);
            let mark = format!("{at}/{UNFINISHED}").trim_start_matches('/').to_owned();
            // A user who may read only a part gets no answer about the folders above it.
            marks.extend(self.exists(&folder.sibling(&mark)).is_ok_and(|is_there| is_there).then_some(mark));
        }
        let keys = listed.iter().map(|object| object.url().key());
        refuse_unfinished(folder, keys.chain(marks.iter().map(String::as_str)), selected)
    }

    /// Returns the folder of a store that a URL names, to write objects to. They replace others of their name
    /// only if `replaces` is set.
    ///
    /// # Errors
    ///
    /// A web server; the name or the store's settings are not valid.
    pub fn folder(
        &self,
        url: &ObjectUrl,
        limits: UploadLimits,
        replaces: bool,
    ) -> Result<ObjectFolder, Error> {
        if url.scheme().is_web() {
            return Err(Error::new(Kind::Usage, "a web server takes no files")
                .at(url.to_string())
                .advise("write to s3://, gs:// or az://, or to a directory"));
        }
        ObjectFolder::new(self.client_for(url, !replaces)?, url, limits, replaces)
    }

    /// Opens a folder of a store that takes its objects together. They replace others of their name only if `overwrite`
    /// is set, or if an unfinished run has marked the folder.
    ///
    /// # Errors
    ///
    /// A web server; the name or the store's settings are not valid; the store refuses or cannot be reached.
    pub fn whole_folder(
        &self,
        url: &ObjectUrl,
        limits: UploadLimits,
        overwrite: bool,
    ) -> Result<WholeFolder, Error> {
        WholeFolder::open(overwrite, |replaces| self.folder(url, limits, replaces))
    }

    /// The number of requests answered so far, and their bytes.
    pub fn traffic(&self) -> (u64, u64) {
        self.traffic.so_far()
    }

    fn client(&self, url: &ObjectUrl) -> Result<Client, Error> {
        self.client_for(url, false)
    }

    fn client_for(&self, url: &ObjectUrl, create_only: bool) -> Result<Client, Error> {
        // A panic cannot leave it half-changed.
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (url.scheme(), url.authority().to_owned(), url.query().map(str::to_owned), create_only);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let built = match &self.simulated {
            Some(client) => Built::simulated(client(create_only)),
            None => build::client(url, &self.options, create_only)?,
        };
        let runtime = self.threads.handle.clone();
        let client = Client::new(built, runtime, Arc::clone(&self.cancel), Arc::clone(&self.traffic));
        clients.insert(key, client.clone());
        Ok(client)
    }
}

impl fmt::Debug for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stores").field("options", &self.options).field("traffic", &self.traffic).finish()
    }
}
