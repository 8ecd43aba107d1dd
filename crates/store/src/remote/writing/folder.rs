//! A folder of a store: its objects, and writing new ones.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use object_store::path::Path;
use object_store::{Error as StoreError, ListResult, ObjectMeta, ObjectStoreExt, PutMode, UpdateVersion};
use tokio::sync::Semaphore;

use crate::error::{Error, Kind};
use crate::location::ObjectUrl;
use crate::objects::Object;
use crate::remote::answers::MAX_ANSWER;
use crate::remote::client::{Client, LAST_PATIENCE, path_of, version_of};
use crate::remote::faults::fault;
use crate::remote::listing::pages;
use crate::remote::writing::put::{Mark, put, remove, taken};
use crate::remote::writing::uploads::Unfinished;
use crate::remote::writing::writer::{ObjectWriter, UploadLimits};

/// How many bytes of an object are requested at a time when it is read from start to end.
const PIECE: u64 = 8 << 20;
/// How long listing, reading and writing a small object may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A folder of a store. Names of objects are relative to it, with slashes.
pub struct ObjectFolder {
    client: Client,
    /// Its key has no slash at its end.
    url: ObjectUrl,
    limits: UploadLimits,
    requests: Arc<Semaphore>,
    replaces: bool,
    /// The versions of small objects as this has last read or written them; `None` for those that did not
    /// exist.
    seen: Mutex<HashMap<String, Option<UpdateVersion>>>,
}

/// An object in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, relative to the folder.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its entity tag, if the store has any.
    pub tag: Option<String>,
}

impl ObjectFolder {
    pub(in crate::remote) fn new(
        client: Client,
        url: &ObjectUrl,
        limits: UploadLimits,
        replaces: bool,
    ) -> Result<Self, Error> {
        let url = url.sibling(url.key().trim_matches('/'));
        path_of(&url)?;
        Ok(Self {
            client,
            url,
            limits,
            requests: Arc::new(Semaphore::new(limits.requests.max(1))),
            replaces,
            seen: Mutex::default(),
        })
    }

    /// Returns the URL of an object; of the folder itself for an empty name.
    pub fn url(&self, name: &str) -> ObjectUrl {
        match (self.url.key(), name) {
            (folder, "") => self.url.sibling(folder),
            ("", name) => self.url.sibling(name),
            (folder, name) => self.url.sibling(format!("{folder}/{name}")),
        }
    }

    /// The URL of an object, and its path in the store.
    fn at(&self, name: &str) -> Result<(ObjectUrl, Path), Error> {
        let url = self.url(name);
        let path = path_of(&url)?;
        Ok((url, path))
    }

    /// Returns the objects directly in a folder below this one, and the names of the folders in it; in this
    /// one for an empty name.
    ///
    /// # Errors
    ///
    /// The store refuses or cannot be reached.
    pub fn list(&self, below: &str) -> Result<(Vec<Entry>, Vec<String>), Error> {
        let (url, path) = self.at(below)?;
        let (mut entries, mut folders) = (Vec::new(), BTreeSet::new());
        let take = |page: ListResult| {
            let of_page = page.objects.iter();
            entries.extend(of_page.filter_map(|meta| Some(entry(self.name_of(&meta.location)?, meta))));
            folders.extend(page.common_prefixes.iter().filter_map(|path| self.name_of(path)));
        };
        self.patiently(&url, async {
            pages(&self.client, &url, &path, true, take).await.map_err(|error| error.at(&url))
        })?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok((entries, folders.into_iter().collect()))
    }

    /// Returns an object; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// The store refuses or cannot be reached.
    pub fn entry(&self, name: &str) -> Result<Option<Entry>, Error> {
        let (url, path) = self.at(name)?;
        let found = self.patiently(&url, async { Ok(self.client.store.head(&path).await) })?;
        match found {
            Ok(meta) => Ok(Some(entry(name.to_owned(), &meta))),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(fault(&url, &error)),
        }
    }

    /// Reads a small object; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// The store refuses or cannot be reached.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let (bytes, version) = self.get(&self.url(name), MAX_ANSWER)?.unzip();
        self.seen().insert(name.to_owned(), version);
        Ok(bytes)
    }

    /// As [`read`](Self::read), an object of at most so many bytes.
    ///
    /// # Errors
    ///
    /// It is longer; the store refuses or cannot be reached.
    pub fn read_at_most(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.get(&self.url(name), most.min(MAX_ANSWER))?.map(|(bytes, _)| bytes))
    }

    /// Reads a small object of the same store, which may be outside of the folder; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// The store refuses or cannot be reached.
    pub fn read_key(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.get(&self.url.sibling(key), MAX_ANSWER)?.map(|(bytes, _)| bytes))
    }

    fn get(&self, url: &ObjectUrl, most: u64) -> Result<Option<(Vec<u8>, UpdateVersion)>, Error> {
        let path = path_of(url)?;
        let get = async { Ok(self.client.small(&path, most).await) };
        match self.patiently(url, get)? {
            Ok((meta, bytes)) => {
                Ok(Some((bytes, UpdateVersion { e_tag: meta.e_tag, version: meta.version })))
            }
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(fault(url, &error)),
        }
    }

    /// Writes a small object in place of the version that this has last read or written, or as a new one.
    ///
    /// # Errors
    ///
    /// Another program has written it in the meantime ([`Kind::Exists`]); the store refuses or cannot be
    /// reached.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let (url, path) = self.at(name)?;
        let mode = match self.seen().get(name).cloned().flatten() {
            Some(version) => PutMode::Update(version),
            None => PutMode::Create,
        };
        let how = (mode, &Mark::new());
        let version = self.patiently(&url, put(&self.client, &url, &path, bytes.to_vec(), how))?;
        self.seen().insert(name.to_owned(), Some(version));
        Ok(())
    }

    /// Writes a small object with one request.
    ///
    /// # Errors
    ///
    /// There is one of its name ([`Kind::Exists`]); the store refuses or cannot be reached.
    pub fn create_small(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let (url, path) = self.at(name)?;
        let how = (PutMode::Create, &Mark::new());
        self.patiently(&url, put(&self.client, &url, &path, bytes.to_vec(), how)).map(drop)
    }

    /// Reads an object from start to end, piece by piece, while it is the one that was found.
    ///
    /// # Errors
    ///
    /// It has changed, or cannot be read; or the error of `take`.
    pub fn read_pieces<E: From<Error>>(
        &self,
        name: &str,
        take: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (url, path) = self.at(name)?;
        let head = async { self.client.store.head(&path).await.map_err(|error| fault(&url, &error)) };
        let meta = self.patiently(&url, head)?;
        let object = Object::new(url.clone(), meta.size, version_of(&meta), Arc::new(self.client.clone()));
        let request = |at: u64| (at < meta.size).then(|| object.start(at..meta.size.min(at + PIECE)));
        let (mut at, mut next) = (PIECE, request(0));
        while let Some(pending) = next {
            // The next piece is requested while this one is taken.
            next = request(at);
            at += PIECE;
            take(&pending.wait()?)?;
        }
        Ok(())
    }

    /// Begins an object. Its upload replaces another object only if this folder may.
    ///
    /// # Errors
    ///
    /// The name is not valid.
    pub fn create(&self, name: &str) -> Result<ObjectWriter, Error> {
        let (url, path) = self.at(name)?;
        let memory = (self.limits, Arc::clone(&self.requests));
        Ok(ObjectWriter::new(self.client.clone(), url, path, self.replaces, memory))
    }

    /// Whether a small object is the one that this has last read or written.
    pub(super) fn is_as_seen(&self, name: &str) -> Result<bool, Error> {
        let seen = self.seen().get(name).cloned().flatten().and_then(|seen| seen.e_tag);
        Ok(self.entry(name)?.is_some_and(|there| there.tag == seen))
    }

    /// Whether an object is the one of the upload with this mark.
    pub(super) fn has_mark(&self, name: &str, mark: &Mark) -> Result<bool, Error> {
        let (url, path) = self.at(name)?;
        Ok(self.patiently(&url, mark.of_ours(&self.client, &url, &path))?.is_some())
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Removes an object, if it exists. One that this has read or written must be the same still.
    ///
    /// # Errors
    ///
    /// Another program has written it in the meantime ([`Kind::Exists`]); the store refuses or cannot be
    /// reached.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        let (url, path) = self.at(name)?;
        let seen = self.seen().get(name).cloned().flatten();
        if let (Some(seen), Some(there)) = (seen.and_then(|seen| seen.e_tag), self.entry(name)?)
            && there.tag.is_some_and(|tag| tag != seen)
        {
            return Err(taken(&url));
        }
        self.patiently(&url, remove(&self.client, &url, &path))?;
        self.seen().remove(name);
        Ok(())
    }

    /// Returns the unfinished uploads of objects below this folder, or of the object that has its name.
    /// `None` if the store cannot list them.
    ///
    /// # Errors
    ///
    /// The store refuses or cannot be reached.
    pub fn unfinished(&self) -> Result<Option<Vec<Unfinished>>, Error> {
        let Some(uploads) = &self.client.uploads else { return Ok(None) };
        let path = path_of(&self.url)?;
        let mut found = self.patiently(&self.url, uploads.below(&self.url, path.as_ref()))?;
        found.retain_mut(|upload| match self.name_of_key(&upload.name) {
            Some(name) => {
                upload.name = name;
                true
            }
            None => false,
        });
        Ok(Some(found))
    }

    /// Aborts an upload; its parts are removed.
    ///
    /// # Errors
    ///
    /// The store refuses or cannot be reached.
    pub fn abort(&self, upload: &Unfinished) -> Result<(), Error> {
        let Some(uploads) = &self.client.uploads else { return Ok(()) };
        let (url, path) = self.at(&upload.name)?;
        self.patiently(&url, uploads.abort(&url, &path, upload))
    }

    /// The name of an object or folder relative to this folder; empty for the object that has its name.
    fn name_of(&self, path: &Path) -> Option<String> {
        self.name_of_key(path.as_ref())
    }

    /// The same, of its key.
    pub(super) fn name_of_key(&self, key: &str) -> Option<String> {
        let rest = key.strip_prefix(self.url.key())?;
        match (self.url.key(), rest.strip_prefix('/')) {
            ("", None) => Some(rest.to_owned()),
            (_, Some(name)) => Some(name.to_owned()),
            (_, None) => rest.is_empty().then(String::new),
        }
    }

    fn patiently<T>(
        &self,
        url: &ObjectUrl,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.client.within(PATIENCE, LAST_PATIENCE, work).unwrap_or_else(|| {
            self.client.check()?;
            Err(Error::new(Kind::Unavailable, "the store did not answer in time")
                .at(url.to_string())
                .advise("check the address, the endpoint and the network"))
        })
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<String, Option<UpdateVersion>>> {
        // A panic cannot leave it half-changed.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn entry(name: String, meta: &ObjectMeta) -> Entry {
    Entry { name, bytes: meta.size, tag: meta.e_tag.clone() }
}

impl fmt::Debug for ObjectFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectFolder").field("url", &self.url).field("limits", &self.limits).finish()
    }
}
