//! Byte buffers that encoder and connection pass back and forth, so that no batch allocates one.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// The free buffers.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    /// A buffer that grew beyond this is let go.
    keep: usize,
    free: Mutex<Vec<Vec<u8>>>,
}

impl Bodies {
    /// Keeps buffers of about `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self { keep: bytes + bytes / 2 + 64 * 1024, free: Mutex::default() })
    }

    /// An empty buffer.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Shares the contents of a buffer. The buffer returns to the free ones when its last reader drops it.
    pub(crate) fn lend(self: &Arc<Self>, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(Lent { bytes, home: Arc::clone(self) })
    }
}

struct Lent {
    bytes: Vec<u8>,
    home: Arc<Bodies>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.bytes.capacity() <= self.home.keep {
            let mut bytes = std::mem::take(&mut self.bytes);
            bytes.clear();
            self.home.free.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_empty_unless_it_grew_too_large() {
        let bodies = Bodies::new(1024);
        let mut body = bodies.take();
        body.extend_from_slice(b"abc");
        let bytes = bodies.lend(body);
        assert_eq!(&bytes[..], b"abc");
        drop(bytes);
        assert_eq!(bodies.free.lock().unwrap().len(), 1);
        assert!(bodies.take().is_empty());
        drop(bodies.lend(vec![0; 1 << 20]));
        assert!(bodies.free.lock().unwrap().is_empty());
    }
}
