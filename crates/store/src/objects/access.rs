//! An object of a store, and requests for its bytes that run while the caller does something else.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use crate::error::{Error, Kind};
use crate::location::ObjectUrl;

/// Starts requests to a store.
pub trait Access: Send + Sync {
    /// Starts to read a range of an object, and fails if the object no longer has this version.
    fn start(&self, object: &Object, range: Range<u64>) -> Pending;

    /// Asks the store for the checksum of an object; `None` if it states none that can be computed here.
    fn digest(&self, object: &Object) -> Option<Box<dyn Digest>>;

    /// The requests so far.
    fn traffic(&self) -> &Traffic;
}

/// The checksum of an object, which is computed from all its bytes in their order.
pub trait Digest: Send {
    /// Takes the next bytes.
    fn update(&mut self, bytes: &[u8]);

    /// Compares the checksum with the one that the store states.
    ///
    /// # Errors
    ///
    /// [`Kind::Damaged`]: they differ.
    fn check(self: Box<Self>) -> Result<(), Error>;
}

/// The version of an object, which later objects of the same name do not share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Version {
    /// The entity tag, as the store sent it.
    ETag(String),
    /// The time of the last change, as the store sent it.
    Modified(String),
    /// The store says nothing.
    Unknown,
}

impl Version {
    /// The entity tag, if it is one.
    pub fn tag(&self) -> Option<&str> {
        match self {
            Self::ETag(tag) => Some(tag),
            _ => None,
        }
    }

    /// The tag that `If-Match` may name. Weak tags never match there.
    pub fn strong_tag(&self) -> Option<&str> {
        match self {
            Self::ETag(tag) if !tag.starts_with("W/") => Some(tag),
            _ => None,
        }
    }
}

/// An object of a store, as it was when it was listed or opened.
#[derive(Clone)]
pub struct Object {
    url: ObjectUrl,
    size: u64,
    version: Version,
    access: Arc<dyn Access>,
}

impl Object {
    /// Returns an object of this size and version.
    pub fn new(url: ObjectUrl, size: u64, version: Version, access: Arc<dyn Access>) -> Self {
        Self { url, size, version, access }
    }

    /// Returns its URL.
    pub fn url(&self) -> &ObjectUrl {
        &self.url
    }

    /// Returns its length in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns its version.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Returns its length and its strong entity tag, if it has one: other bytes would have others.
    pub fn stamp(&self) -> Option<String> {
        self.version.strong_tag().map(|tag| format!("{}:{tag}", self.size))
    }

    /// Starts to read a range of its bytes.
    pub fn start(&self, range: Range<u64>) -> Pending {
        self.access.start(self, range)
    }

    /// Asks its store for its checksum, with one request; `None` if the store states none that can be computed here.
    pub fn digest(&self) -> Option<Box<dyn Digest>> {
        self.access.digest(self)
    }

    /// The requests to its store so far.
    pub fn traffic(&self) -> &Traffic {
        self.access.traffic()
    }

    /// Returns the error for an object that is not the one that was opened.
    pub fn changed(&self) -> Error {
        Error::new(Kind::Changed, "the object changed while it was read")
            .at(self.url.to_string())
            .advise("run the command again when it no longer changes")
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes)", self.url, self.size)
    }
}

/// Requests and bytes of a store.
#[derive(Debug, Default)]
pub struct Traffic {
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl Traffic {
    /// Counts an answered request.
    pub fn count(&self, bytes: u64) {
        self.requests.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// The number of answered requests, and their bytes.
    pub fn so_far(&self) -> (u64, u64) {
        (self.requests.load(Relaxed), self.bytes.load(Relaxed))
    }
}

/// A request under way.
pub struct Pending {
    answer: Receiver<Result<Vec<u8>, Error>>,
    /// Set when the caller wants to stop.
    cancel: Arc<AtomicBool>,
}

/// The other end of a [`Pending`], which receives its result.
pub struct Answer(Sender<Result<Vec<u8>, Error>>);

impl Answer {
    /// Passes on the result. It is dropped if the caller no longer waits.
    pub fn send(self, result: Result<Vec<u8>, Error>) {
        let _ = self.0.send(result);
    }
}

impl Pending {
    /// Returns a request, and the receiver of its result. Waiting for it ends when `cancel` is set.
    pub fn new(cancel: Arc<AtomicBool>) -> (Self, Answer) {
        let (sender, answer) = bounded(1);
        (Self { answer, cancel }, Answer(sender))
    }

    /// Waits for the bytes.
    ///
    /// # Errors
    ///
    /// The store does not have them or cannot be reached, or the caller cancelled.
    pub fn wait(self) -> Result<Vec<u8>, Error> {
        loop {
            match self.answer.recv_timeout(Duration::from_millis(50)) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Timeout) if !self.cancel.load(Relaxed) => {}
                Err(_) => return Err(Error::new(Kind::Cancelled, "cancelled")),
            }
        }
    }
}
