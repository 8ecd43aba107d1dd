//! An object that is being written: parts of it are sent while the next ones are filled.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::path::Path;
use object_store::{
    Error as StoreError, MultipartUpload, ObjectStoreExt, PutMode, PutMultipartOptions, PutPayload,
};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::error::{Error, Kind};
use crate::location::{ObjectUrl, Scheme};
use crate::remote::client::{Client, LAST_PATIENCE};
use crate::remote::faults::fault;
use crate::remote::writing::put::{Mark, put, taken};

/// The most parts of an object; S3 takes no more.
const MAX_PARTS: u64 = 10_000;
/// The least bytes of a part but the last; S3 takes no less.
const MIN_PART: usize = 5 << 20;
/// How long to try to abort an upload.
const ABORTING: Duration = Duration::from_secs(10);

/// How much memory uploads may take: `requests` parts under way, and one part for each object that is being
/// written.
#[derive(Clone, Copy, Debug)]
pub struct UploadLimits {
    /// The bytes of a part. Objects that would have too many parts have larger ones.
    pub part: usize,
    /// The parts that are sent at the same time, of all objects of a folder.
    pub requests: usize,
}

impl Default for UploadLimits {
    fn default() -> Self {
        Self { part: 8 << 20, requests: 8 }
    }
}

/// An object that takes its name when all its bytes are in the store. Dropped before, its upload is aborted.
pub struct ObjectWriter {
    client: Client,
    url: ObjectUrl,
    path: Path,
    /// Whether it may replace another object.
    replaces: bool,
    mark: Mark,
    part_bytes: usize,
    /// Whether the size of parts still depends on the size of the object.
    is_new: bool,
    part: Vec<u8>,
    upload: Option<Box<dyn MultipartUpload>>,
    sending: VecDeque<JoinHandle<Result<(), StoreError>>>,
    requests: Arc<Semaphore>,
}

impl ObjectWriter {
    pub(super) fn new(
        client: Client,
        url: ObjectUrl,
        path: Path,
        replaces: bool,
        (limits, requests): (UploadLimits, Arc<Semaphore>),
    ) -> Self {
        let is_simulated = client.is_simulated();
        Self {
            client,
            url,
            path,
            replaces,
            mark: Mark::new(),
            part_bytes: limits.part.max(if is_simulated { 1 } else { MIN_PART }),
            is_new: true,
            part: Vec::new(),
            upload: None,
            sending: VecDeque::new(),
            requests,
        }
    }

    /// Appends `pieces`. About `more` bytes will follow; the first call determines the size of parts by it.
    ///
    /// # Errors
    ///
    /// A part cannot be sent, or the caller cancelled.
    pub fn write(&mut self, pieces: &[&[u8]], more: u64) -> Result<(), Error> {
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        if more > 0 && self.is_new {
            self.is_new = false;
            self.part_bytes = self.part_bytes.max(part_for(bytes as u64, more));
        }
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                let (now, later) = rest.split_at(rest.len().min(self.part_bytes - self.part.len()));
                self.make_room(now.len());
                self.part.extend_from_slice(now);
                rest = later;
                if self.part.len() == self.part_bytes {
                    self.send_part()?;
                }
            }
        }
        Ok(())
    }

    /// Makes room for more bytes of the part: twice as much as before, but no more than a part takes; for all
    /// of it if the object has several.
    fn make_room(&mut self, bytes: usize) {
        let needed = self.part.len() + bytes;
        if needed > self.part.capacity() {
            let grown = needed.max(self.part.capacity() * 2).min(self.part_bytes);
            let room = if self.upload.is_some() { self.part_bytes } else { grown };
            self.part.reserve_exact(room - self.part.len());
        }
    }

    /// The mark of its upload.
    pub(super) fn mark(&self) -> &Mark {
        &self.mark
    }

    /// Completes the object: it is in the store when this returns. Returns its entity tag.
    ///
    /// # Errors
    ///
    /// A part cannot be sent, another program has written the object, or the caller cancelled.
    pub fn finish(mut self) -> Result<Option<String>, Error> {
        if self.upload.is_none() {
            let mode = if self.replaces { PutMode::Overwrite } else { PutMode::Create };
            let bytes = std::mem::take(&mut self.part);
            let how = (mode, &self.mark);
            let version = self.client.wait(put(&self.client, &self.url, &self.path, bytes, how))??;
            return Ok(version.e_tag);
        }
        if !self.part.is_empty() {
            self.send_part()?;
        }
        while let Some(sent) = self.sending.pop_front() {
            let sent = self.client.wait(sent)?.map_err(|_| broken(&self.url))?;
            sent.map_err(|error| self.of_part(&error))?;
        }
        let Some(mut upload) = self.upload.take() else { return Err(broken(&self.url)) };
        let completed = self.client.wait(self.complete(upload.as_mut()));
        match completed {
            Ok(Ok(tag)) => Ok(tag),
            Ok(Err(error)) | Err(error) => {
                // Dropping the writer aborts it.
                self.upload = Some(upload);
                Err(error)
            }
        }
    }

    async fn complete(&self, upload: &mut dyn MultipartUpload) -> Result<Option<String>, Error> {
        if !self.replaces && self.url.scheme() != Scheme::S3 {
            // The other stores cannot be asked to compare at the last moment.
            match self.client.store.head(&self.path).await {
                Err(StoreError::NotFound { .. }) => {}
                Ok(_) => return Err(taken(&self.url)),
                Err(error) => return Err(fault(&self.url, &error)),
            }
        }
        let error = match upload.complete().await {
            Ok(put) => return Ok(put.e_tag),
            Err(error) => error,
        };
        // The answer of an earlier attempt may have been lost.
        if let Ok(Some(version)) = self.mark.of_ours(&self.client, &self.url, &self.path).await {
            return Ok(version.e_tag);
        }
        Err(match error {
            StoreError::AlreadyExists { .. } | StoreError::Precondition { .. } => taken(&self.url),
            StoreError::NotFound { .. } => aborted(&self.url),
            error => fault(&self.url, &error),
        })
    }

    /// Sends the part as soon as fewer than the allowed number are under way.
    fn send_part(&mut self) -> Result<(), Error> {
        while self.sending.front().is_some_and(JoinHandle::is_finished) {
            let Some(sent) = self.sending.pop_front() else { break };
            let sent = self.client.wait(sent)?.map_err(|_| broken(&self.url))?;
            sent.map_err(|error| self.of_part(&error))?;
        }
        let permit = self.client.wait(Arc::clone(&self.requests).acquire_owned())?;
        let permit = permit.map_err(|_| broken(&self.url))?;
        if self.upload.is_none() {
            let options =
                PutMultipartOptions { attributes: self.mark.attributes(), ..PutMultipartOptions::default() };
            let begun = self.client.wait(self.client.store.put_multipart_opts(&self.path, options))?;
            self.upload = Some(begun.map_err(|error| fault(&self.url, &error))?);
        }
        let Some(upload) = &mut self.upload else { return Err(broken(&self.url)) };
        let bytes = std::mem::take(&mut self.part);
        let sending = upload.put_part(PutPayload::from(bytes));
        self.sending.push_back(self.client.begin(async move {
            let sent = sending.await;
            drop(permit);
            sent
        }));
        Ok(())
    }

    /// The error of a part that was not taken.
    fn of_part(&self, error: &StoreError) -> Error {
        match error {
            StoreError::NotFound { .. } => aborted(&self.url),
            error => fault(&self.url, error),
        }
    }
}

/// The size of parts of an object that has `written` bytes, with about `more` to follow.
fn part_for(written: u64, more: u64) -> usize {
    // A quarter more than estimated must also fit.
    let bytes = written.saturating_add(more);
    let most = bytes.saturating_add(bytes / 4).div_ceil(MAX_PARTS);
    usize::try_from(most).unwrap_or(usize::MAX)
}

fn aborted(url: &ObjectUrl) -> Error {
    Error::new(Kind::Exists, "another run or a clean-up has aborted the upload")
        .at(url.to_string())
        .advise("make sure that no other run writes here, then run the same command again")
}

/// The runtime has ended, or a task of it has panicked.
fn broken(url: &ObjectUrl) -> Error {
    Error::new(Kind::Unavailable, "the upload was interrupted").at(url.to_string())
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        let Some(mut upload) = self.upload.take() else { return };
        for part in &self.sending {
            part.abort();
        }
        // If an error led here, it is the one to report; `gen clean` finds the leftovers.
        let _ = self.client.within(ABORTING, LAST_PATIENCE, upload.abort());
    }
}

impl fmt::Debug for ObjectWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectWriter").field("url", &self.url).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_large_as_the_object_needs_to_fit_into_their_number() {
        assert!(part_for(64 << 20, 1 << 30) < MIN_PART);
        let terabyte = 1 << 40;
        let part = part_for(64 << 20, terabyte) as u64;
        assert!(part * MAX_PARTS >= terabyte / 4 * 5 && part < 256 << 20, "{part}");
        assert_eq!(part_for(u64::MAX, u64::MAX) as u64, u64::MAX.div_ceil(MAX_PARTS));
    }
}
