//! Byte buffers of one size that the encoder and the connection reuse.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// A pool of free buffers.
#[derive(Debug)]
pub struct Buffers {
    size: usize,
    free: Mutex<Vec<Vec<u8>>>,
}

/// Bytes at the end of a buffer that are never emitted, so that a value can always be stored at its greatest
/// width.
pub(crate) const SLACK: usize = 16;

/// A buffer being filled. A reused one does not have to be zeroed.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// The room for rows, and [`SLACK`].
    pub bytes: Vec<u8>,
    pub filled: usize,
}

impl Buffers {
    /// Returns a pool of buffers of `size` bytes, at least 4,096. Taking a buffer allocates one if the pool
    /// is empty.
    pub fn new(size: usize) -> Arc<Self> {
        Arc::new(Self { size: size.max(4096), free: Mutex::default() })
    }

    /// Takes an empty buffer.
    pub(crate) fn take(&self) -> Buffer {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Buffer { bytes: free.unwrap_or_else(|| vec![0; self.size + SLACK]), filled: 0 }
    }
}

impl Buffer {
    /// Returns the capacity in bytes, without [`SLACK`].
    pub(crate) fn room(&self) -> usize {
        self.bytes.len() - SLACK
    }

    /// Makes room for at least `bytes` more bytes. The buffer grows only for a row that is larger than a
    /// buffer.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        if self.filled + bytes > self.room() {
            self.bytes.resize(self.filled + bytes + SLACK, 0);
        }
    }

    /// Returns the filled part. Its memory returns to `buffers` when the last reader drops it.
    pub(crate) fn into_bytes(self, buffers: &Arc<Buffers>) -> Bytes {
        Bytes::from_owner(Lent { buffer: self, home: Arc::clone(buffers) })
    }
}

struct Lent {
    buffer: Buffer,
    home: Arc<Buffers>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer.bytes[..self.buffer.filled]
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // A buffer that had to grow is freed, so that memory stays within the configured limit.
        if self.buffer.room() == self.home.size {
            let bytes = std::mem::take(&mut self.buffer.bytes);
            self.home.free.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_when_its_bytes_are_dropped_unless_it_grew() {
        let buffers = Buffers::new(4096);
        let mut buffer = buffers.take();
        buffer.filled = 3;
        let bytes = buffer.into_bytes(&buffers);
        assert_eq!(bytes.len(), 3);
        drop(bytes);
        assert_eq!(buffers.free.lock().unwrap().len(), 1);
        let mut grown = buffers.take();
        grown.reserve(5000);
        drop(grown.into_bytes(&buffers));
        assert!(buffers.free.lock().unwrap().is_empty());
    }
}
