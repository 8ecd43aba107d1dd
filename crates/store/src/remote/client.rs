//! The client of one store: reads ranges of objects on the runtime's threads.

use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{Error as StoreError, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::error::{Error, Kind};
use crate::location::ObjectUrl;
use crate::objects::{Access, Answer, Digest, Object, Pending, Traffic, Version};
use crate::remote::answers::MAX_ANSWER;
use crate::remote::build::Built;
use crate::remote::checksums::{Running, Stated};
use crate::remote::faults::{fault, is_empty, lacks_ranges, was_repeated};
use crate::remote::hedging::Hedging;
use crate::remote::writing::uploads::UploadList;

/// How often a broken transfer starts again. The client repeats requests that fail immediately.
const TRANSFERS: u32 = 4;

/// How often to look whether the caller has cancelled.
const LOOK: Duration = Duration::from_millis(50);

/// How long a cancelled command may take to clean up, all its requests together: a store that does not answer must not
/// hold it.
pub(super) const LAST_PATIENCE: Duration = Duration::from_millis(1500);

/// The least time for each request, even when the time to clean up is over.
const LEAST: Duration = Duration::from_millis(300);

/// The capacity reserved before any bytes arrive; a store's answer is usually not larger.
const MAX_CAPACITY: u64 = 16 << 20;

/// The client of one store.
#[derive(Clone)]
pub(super) struct Client {
    pub store: Arc<dyn ObjectStore>,
    pub pages: Option<Arc<dyn PaginatedListStore>>,
    pub uploads: Option<Arc<UploadList>>,
    pub runtime: Handle,
    cancel: Arc<AtomicBool>,
    /// When the command was first seen to be cancelled.
    cancelled: Arc<OnceLock<Instant>>,
    traffic: Arc<Traffic>,
    hedging: Arc<Hedging>,
}

impl Client {
    pub(super) fn new(built: Built, runtime: Handle, cancel: Arc<AtomicBool>, traffic: Arc<Traffic>) -> Self {
        let Built { store, pages, uploads } = built;
        let (cancelled, hedging) = (Arc::default(), Arc::default());
        Self { store, pages, uploads, runtime, cancel, cancelled, traffic, hedging }
    }

    /// Waits for work until the caller cancels.
    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        let done = self.within(Duration::MAX, Duration::ZERO, work);
        done.ok_or_else(|| Error::new(Kind::Cancelled, "cancelled"))
    }

    /// An error once the caller has cancelled.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.cancel.load(Relaxed) { Err(Error::new(Kind::Cancelled, "cancelled")) } else { Ok(()) }
    }

    /// Waits for work, at most for `patience`. Once the caller has cancelled, gives up after `last`, but gives the work
    /// at least [`LEAST`] of it. A separate thread watches the time: a server can keep the runtime's threads busy.
    pub(super) fn within<T>(
        &self,
        patience: Duration,
        last: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let (given_up, done, cancel) = (Notify::new(), AtomicBool::new(false), &self.cancel);
        std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let begun = Instant::now();
                while !done.load(Relaxed) {
                    let is_over = cancel.load(Relaxed)
                        && self.cancelled.get_or_init(Instant::now).elapsed() >= last
                        && begun.elapsed() >= last.min(LEAST);
                    if is_over || begun.elapsed() >= patience {
                        return given_up.notify_one();
                    }
                    std::thread::park_timeout(LOOK);
                }
            });
            let result = self.runtime.block_on(async {
                let (work, given_up) = (pin!(work), pin!(given_up.notified()));
                match select(work, given_up).await {
                    Either::Left((result, _)) => Some(result),
                    Either::Right(_) => None,
                }
            });
            done.store(true, Relaxed);
            watch.thread().unpark();
            result
        })
    }

    /// Whether the store is simulated.
    pub(super) fn is_simulated(&self) -> bool {
        matches!(self.uploads.as_deref(), Some(UploadList::Simulated(_)))
    }

    /// Starts work on the runtime's threads. A simulation does one thing after the other.
    pub(super) fn begin<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let begun = self.runtime.spawn(work);
        while self.is_simulated() && !begun.is_finished() {
            std::thread::yield_now();
        }
        begun
    }

    /// Waits before a request is sent again; not in a simulation.
    pub(super) async fn pause(&self, attempt: u32) {
        if !self.is_simulated() {
            tokio::time::sleep(Duration::from_millis(100 << attempt)).await;
        }
    }

    /// Counts an answered request.
    pub(super) fn count(&self, bytes: u64) {
        self.traffic.count(bytes);
    }

    /// Starts work whose bytes the caller waits for.
    pub(super) fn spawn(
        &self,
        work: impl Future<Output = Result<Vec<u8>, Error>> + Send + 'static,
    ) -> Pending {
        let (pending, answer): (Pending, Answer) = Pending::new(Arc::clone(&self.cancel));
        drop(self.begin(async move { answer.send(work.await) }));
        pending
    }

    /// Reads the last bytes of an object whose size is not known, with one request where the store can do it.
    pub(super) fn open(&self, url: &ObjectUrl, tail: u64) -> Result<(Object, Vec<u8>), Error> {
        let (client, place) = (self.clone(), url.clone());
        let (found, met) = crossbeam_channel::bounded(1);
        let bytes = self.spawn(async move {
            let path = path_of(&place)?;
            let (meta, bytes) = client.last_bytes(&place, &path, tail).await?;
            let _ = found.send(meta);
            Ok(bytes)
        });
        let bytes = bytes.wait()?;
        let lost = |_| Error::new(Kind::Cancelled, "cancelled");
        let meta = met.try_recv().map_err(lost)?;
        Ok((Object::new(url.clone(), meta.size, version_of(&meta), Arc::new(self.clone())), bytes))
    }

    async fn last_bytes(
        &self,
        url: &ObjectUrl,
        path: &Path,
        tail: u64,
    ) -> Result<(ObjectMeta, Vec<u8>), Error> {
        let suffix = GetOptions { range: Some(GetRange::Suffix(tail)), ..GetOptions::default() };
        match self.get(path, suffix).await {
            Ok((meta, bytes)) => Ok((meta, bytes)),
            // Azure has no suffix ranges.
            Err(StoreError::NotSupported { .. }) => {
                let failed = |error| fault(url, &error);
                let meta = self.store.head(path).await.map_err(failed)?;
                self.traffic.count(0);
                let range = meta.size.saturating_sub(tail)..meta.size;
                let bytes = if range.is_empty() {
                    Vec::new()
                } else {
                    self.range(path, range, None).await.map_err(failed)?.1
                };
                Ok((meta, bytes))
            }
            // Some servers answer a request for a range of nothing with all of it.
            Err(error) if lacks_ranges(&error) || is_empty(&error) => match self.store.head(path).await {
                Ok(meta) if meta.size == 0 => Ok((meta, Vec::new())),
                _ => Err(fault(url, &error)),
            },
            Err(error) => Err(fault(url, &error)),
        }
    }

    async fn range(
        &self,
        path: &Path,
        range: Range<u64>,
        if_match: Option<String>,
    ) -> Result<(ObjectMeta, Vec<u8>), StoreError> {
        self.get(
            path,
            GetOptions { range: Some(GetRange::Bounded(range)), if_match, ..GetOptions::default() },
        )
        .await
    }

    /// Reads an object of at most so many bytes.
    pub(super) async fn small(&self, path: &Path, most: u64) -> Result<(ObjectMeta, Vec<u8>), StoreError> {
        whole(|| self.get_once(path, GetOptions::default(), most)).await
    }

    /// Reads the range that the options name.
    async fn get(&self, path: &Path, options: GetOptions) -> Result<(ObjectMeta, Vec<u8>), StoreError> {
        whole(|| self.get_once(path, options.clone(), MAX_ANSWER)).await
    }

    async fn get_once(
        &self,
        path: &Path,
        options: GetOptions,
        most: u64,
    ) -> Result<(ObjectMeta, Vec<u8>), StoreError> {
        let answer = self.hedging.first(|| self.store.get_opts(path, options.clone())).await?;
        let (meta, length) = (answer.meta.clone(), answer.range.end - answer.range.start);
        let stated = answer.extensions.get::<Stated>().filter(|_| answer.range == (0..meta.size)).cloned();
        let wrong = |source| StoreError::Generic { store: "store", source };
        let most = match &options.range {
            Some(GetRange::Bounded(range)) => range.end - range.start,
            Some(GetRange::Suffix(bytes)) => *bytes,
            _ => most,
        };
        if length > most {
            return Err(wrong(format!("an answer of {length} bytes, where at most {most} are read").into()));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(length.min(MAX_CAPACITY)).unwrap_or(0));
        let mut stream = answer.into_stream();
        while let Some(part) = stream.next().await {
            bytes.extend_from_slice(&part?);
            // Never more than the answer's headers promised.
            if bytes.len() as u64 > length {
                break;
            }
        }
        self.traffic.count(bytes.len() as u64);
        if bytes.len() as u64 != length {
            return Err(wrong("an answer of another length".into()));
        }
        match stated.map_or(Ok(()), |stated| stated.check(&bytes)) {
            Ok(()) => Ok((meta, bytes)),
            Err(damaged) => Err(wrong(damaged.into())),
        }
    }
}

/// Returns the answer to a request. If it breaks off, sends the request again.
pub(super) async fn whole<T, F>(mut request: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut attempt = 0;
    loop {
        match request().await {
            Err(error) if attempt + 1 < TRANSFERS && broke_off(&error) => attempt += 1,
            result => return result,
        }
        tokio::time::sleep(Duration::from_millis(100 << attempt)).await;
    }
}

/// Whether a transfer broke off after its answer began.
fn broke_off(error: &StoreError) -> bool {
    matches!(error, StoreError::Generic { .. }) && !was_repeated(error) && !lacks_ranges(error)
}

impl Access for Client {
    fn start(&self, object: &Object, range: Range<u64>) -> Pending {
        let (client, object) = (self.clone(), object.clone());
        self.spawn(async move {
            let url = object.url();
            let path = path_of(url)?;
            let if_match = object.version().strong_tag().map(str::to_owned);
            let read = client.range(&path, range, if_match).await;
            let (meta, bytes) = read.map_err(|error| match fault(url, &error) {
                error if error.kind() == Kind::Changed => object.changed(),
                error => error,
            })?;
            // Not every server heeds If-Match.
            match version_of(&meta) == *object.version() && meta.size == object.size() {
                true => Ok(bytes),
                false => Err(object.changed()),
            }
        })
    }

    fn digest(&self, object: &Object) -> Option<Box<dyn Digest>> {
        let url = object.url();
        if url.scheme().is_web() {
            return None;
        }
        let asked = GetOptions { head: true, ..GetOptions::default() };
        let answer =
            async { self.store.get_opts(&path_of(url)?, asked).await.map_err(|error| fault(url, &error)) };
        // If the store does not answer, the checksum is skipped; the requests for the bytes report their own errors.
        let answer = self.wait(answer).flatten().ok()?;
        self.traffic.count(0);
        let stated = answer.extensions.get::<Stated>()?;
        let is_same = version_of(&answer.meta) == *object.version();
        is_same.then(|| Box::new(Running::at(stated.clone(), url.to_string())) as Box<dyn Digest>)
    }

    fn traffic(&self) -> &Traffic {
        &self.traffic
    }
}

/// The most bytes of a name, a query or a token: the address of a request has less than 64 KiB, and may take three
/// characters for each.
pub(super) const MAX_NAME: usize = 16 << 10;

/// The path of an object in its store.
pub(super) fn path_of(url: &ObjectUrl) -> Result<Path, Error> {
    if url.key().len() + url.query().map_or(0, str::len) > MAX_NAME {
        return Err(Error::new(Kind::Usage, format!("the name has more than {MAX_NAME} bytes"))
            .at(format!("{:.100}…", url.to_string()))
            .advise("check the name, or the list that has it"));
    }
    let path = match url.scheme().is_web() {
        true => Path::from_url_path(url.key()),
        false => Path::parse(url.key()),
    };
    path.map_err(|source| fault(url, &StoreError::InvalidPath { source }))
}

/// The version that a store's answer names.
pub(super) fn version_of(meta: &ObjectMeta) -> Version {
    match &meta.e_tag {
        Some(tag) => Version::ETag(tag.clone()),
        // Stores that send no time get the start of 1970 from the client.
        None if meta.last_modified.timestamp() > 0 => Version::Modified(meta.last_modified.to_rfc3339()),
        None => Version::Unknown,
    }
}
