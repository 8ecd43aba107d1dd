//! The bytes of an object from its first to its last, requested ahead by a thread.

use std::io::{self, Read};
use std::sync::Arc;

use crossbeam_channel::{Receiver, bounded};
use sawmill_profile::{Spawned, spawn};
use sawmill_store::ObjectReader;

/// Bytes of a request.
const PIECE: u64 = 4 << 20;
/// Requested pieces that wait to be decoded.
const AHEAD: usize = 2;

/// An object as a stream.
pub(super) struct ObjectStream {
    pieces: Receiver<Vec<u8>>,
    /// Knows at the end of the pieces why no more follow.
    thread: Option<Spawned<(), io::Error>>,
    piece: Vec<u8>,
    at: usize,
}

impl ObjectStream {
    /// Starts to read. The thread ends with the object, at an error, or when the stream is dropped.
    ///
    /// # Errors
    /// The system cannot start another thread.
    pub(super) fn start(object: Arc<ObjectReader>) -> io::Result<Self> {
        let (sender, pieces) = bounded(AHEAD);
        let thread = spawn("object", move || -> io::Result<()> {
            let (mut at, end) = (0, object.object().size());
            let mut digest = object.object().digest();
            while at < end {
                let mut piece = vec![0; PIECE.min(end - at) as usize];
                object.read_exact_at(at, &mut piece)?;
                at += piece.len() as u64;
                if let Some(digest) = &mut digest {
                    digest.update(&piece);
                }
                if sender.send(piece).is_err() {
                    return Ok(());
                }
            }
            digest.map_or(Ok(()), |digest| Ok(digest.check()?))
        });
        Ok(Self { pieces, thread: Some(thread?), piece: Vec::new(), at: 0 })
    }
}

impl Read for ObjectStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            let Ok(piece) = self.pieces.recv() else {
                return self.thread.take().map_or(Ok(()), Spawned::join).map(|()| 0);
            };
            (self.piece, self.at) = (piece, 0);
        }
        let few = buffer.len().min(self.piece.len() - self.at);
        buffer[..few].copy_from_slice(&self.piece[self.at..self.at + few]);
        self.at += few;
        Ok(few)
    }
}
