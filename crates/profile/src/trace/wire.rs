//! Counts bytes on our own connections where they are sent and received.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes sent and received. Clones share the counts: a transport increments one, the
/// [`crate::Sampler`] reads another.
#[derive(Clone, Debug, Default)]
pub struct WireCounters {
    counts: Arc<Counts>,
}

/// Separate, so that a sending and a receiving thread do not share a cache line.
#[derive(Debug, Default)]
struct Counts {
    sent: Padded,
    received: Padded,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded(AtomicU64);

impl WireCounters {
    /// Counters at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts bytes passed to a socket.
    pub fn add_sent(&self, bytes: u64) {
        self.counts.sent.0.fetch_add(bytes, Relaxed);
    }

    /// Counts bytes read from a socket.
    pub fn add_received(&self, bytes: u64) {
        self.counts.received.0.fetch_add(bytes, Relaxed);
    }

    /// Bytes sent so far.
    pub fn sent(&self) -> u64 {
        self.counts.sent.0.load(Relaxed)
    }

    /// Bytes received so far.
    pub fn received(&self) -> u64 {
        self.counts.received.0.load(Relaxed)
    }

    /// Wraps a stream and counts its reads and writes here.
    ///
    /// ```
    /// use std::io::Write;
    /// let counters = sawmill_profile::WireCounters::new();
    /// let mut stream = counters.counting(Vec::new());
    /// stream.write_all(b"COPY").unwrap();
    /// assert_eq!(counters.sent(), 4);
    /// ```
    pub fn counting<S>(&self, stream: S) -> CountedStream<S> {
        CountedStream { stream, counters: self.clone() }
    }
}

/// A stream with counted bytes; see [`WireCounters::counting`].
#[derive(Debug)]
pub struct CountedStream<S> {
    stream: S,
    counters: WireCounters,
}

impl<S> CountedStream<S> {
    /// The inner stream.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// The inner stream; bytes sent through it directly are not counted.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Returns the inner stream.
    pub fn into_inner(self) -> S {
        self.stream
    }

    fn sent(&self, bytes: usize) -> usize {
        self.counters.add_sent(bytes as u64);
        bytes
    }

    fn received(&self, bytes: usize) -> usize {
        self.counters.add_received(bytes as u64);
        bytes
    }
}

impl<S: Read> Read for CountedStream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.stream.read(buffer)?;
        Ok(self.received(bytes))
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let bytes = self.stream.read_vectored(buffers)?;
        Ok(self.received(bytes))
    }
}

impl<S: Write> Write for CountedStream<S> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let bytes = self.stream.write(buffer)?;
        Ok(self.sent(bytes))
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        let bytes = self.stream.write_vectored(buffers)?;
        Ok(self.sent(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_counted_apart() {
        let counters = WireCounters::new();
        let mut text = String::new();
        counters.counting(&b"answer"[..]).read_to_string(&mut text).unwrap();
        counters.counting(Vec::new()).write_all(b"ask").unwrap();
        assert_eq!((counters.sent(), counters.received()), (3, 6));
    }
}
