//! Byte buffers of one size that go round between encoder and connection.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// The buffers that are free.
#[derive(Debug)]
pub struct Buffers {
    size: usize,
    free: Mutex<Vec<Vec<u8>>>,
}

/// Bytes at a buffer's end that are never handed out, so that a value can be stored at its greatest width
/// wherever there is room for it at all.
pub(crate) const SLACK: usize = 16;

/// A buffer being filled. Used again, it needs no zeroing.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// Its room, and [`SLACK`].
    pub bytes: Vec<u8>,
    pub filled: usize,
}

impl Buffers {
    /// Buffers of `size` bytes, at least 4,096. They are made when they are taken.
    pub fn new(size: usize) -> Arc<Self> {
        Arc::new(Self { size: size.max(4096), free: Mutex::default() })
    }

    /// An empty buffer.
    pub(crate) fn take(&self) -> Buffer {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Buffer { bytes: free.unwrap_or_else(|| vec![0; self.size + SLACK]), filled: 0 }
    }
}

impl Buffer {
    /// How many bytes it takes, full or empty.
    pub(crate) fn room(&self) -> usize {
        self.bytes.len() - SLACK
    }

    /// Room for at least `bytes` more. Grows only for a row that is larger than a buffer.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        if self.filled + bytes > self.room() {
            self.bytes.resize(self.filled + bytes + SLACK, 0);
        }
    }

    /// The filled part; its memory comes back to `buffers` when the last reader is done.
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
        // One that had to grow is let go, so that memory stays what was configured.
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
