//! Reads an object in any order, with few requests: small reads that lie close together share one.

use std::io;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::objects::{Fault, Object};

/// The least bytes of a request: reading along the gaps between wanted bytes is quicker than another request.
const MIN: u64 = 256 << 10;
/// The most bytes of a request that reads along, reached when one read follows the other.
const MAX: u64 = 8 << 20;

/// How many answers are kept, and how many bytes, for columns that are read in turn.
const ANSWERS: usize = 32;
const HELD: usize = 32 << 20;

/// Reads an object in any order. It keeps the object's end, if that was read to open it, and the last answers.
#[derive(Debug)]
pub struct ObjectReader {
    object: Object,
    end: Held,
    /// The one that was used last is at the end.
    answers: Mutex<Vec<Held>>,
    fault: Fault,
}

/// Bytes of an object, from a position on.
#[derive(Debug, Default)]
struct Held {
    start: u64,
    bytes: Vec<u8>,
}

impl Held {
    fn range(&self) -> Range<u64> {
        self.start..self.start + self.bytes.len() as u64
    }

    /// Fills `buffer` if all its bytes are here.
    fn fill(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let from = offset.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        let found = from.and_then(|from| self.bytes.get(from..)?.get(..buffer.len()));
        found.map(|found| buffer.copy_from_slice(found)).is_some()
    }
}

impl ObjectReader {
    /// Returns a reader of an object whose last bytes were read already.
    pub fn new(object: Object, end: Vec<u8>) -> Self {
        let end = Held { start: object.size().saturating_sub(end.len() as u64), bytes: end };
        Self { object, end, answers: Mutex::default(), fault: Fault::default() }
    }

    /// Shares the first error with other readers of the object.
    pub fn with_fault(self, fault: Fault) -> Self {
        Self { fault, ..self }
    }

    /// The object.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// The first error of a read. Readers above wrap it in words of their own.
    pub fn fault(&self) -> Option<&Error> {
        self.fault.get()
    }

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// The object is shorter, has changed, or cannot be read.
    pub fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if let Some(fault) = self.fault.get() {
            return Err(fault.clone().into());
        }
        let wanted = offset..offset.saturating_add(buffer.len() as u64);
        if wanted.end > self.object.size() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if buffer.is_empty() || self.end.fill(offset, buffer) {
            return Ok(());
        }
        let mut answers = self.answers();
        if let Some(at) = answers.iter().position(|held| held.fill(offset, buffer)) {
            answers[at..].rotate_left(1);
            return Ok(());
        }
        let before = answers.iter().position(|held| (held.start..=held.range().end).contains(&offset));
        let range = self.request(wanted, before.map(|at| answers[at].range()));
        let start = range.start;
        let bytes = self.object.start(range).wait().map_err(|error| {
            let _ = self.fault.set(error.clone());
            io::Error::from(error)
        })?;
        // The access answers with as many bytes as it was asked for, or an error.
        let read = Held { start, bytes };
        if !read.fill(offset, buffer) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // It takes the place of the answer that it follows.
        before.map(|at| answers.remove(at));
        answers.push(read);
        let mut held: usize = answers.iter().map(|held| held.bytes.len()).sum();
        while answers.len() > ANSWERS || (answers.len() > 1 && held > HELD) {
            held -= answers.remove(0).bytes.len();
        }
        Ok(())
    }

    /// The range to request so that the next reads need no further request: bytes after this read if it
    /// follows another answer, else bytes around it.
    fn request(&self, wanted: Range<u64>, before: Option<Range<u64>>) -> Range<u64> {
        let (start, along) = match before {
            Some(before) => (wanted.start, ((before.end - before.start) * 2).clamp(MIN, MAX)),
            None => (wanted.start - wanted.start % MIN, MIN),
        };
        let end = start.saturating_add(along).min(self.object.size());
        // The bytes at the object's end are here already.
        let end = if wanted.end <= self.end.start { end.min(self.end.start) } else { end };
        start..end.max(wanted.end)
    }

    fn answers(&self) -> MutexGuard<'_, Vec<Held>> {
        // A panic cannot leave it half-changed.
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
