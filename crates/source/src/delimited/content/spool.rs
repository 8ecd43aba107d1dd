//! Decoded text in a temporary file of compressed blocks. Any range can be read.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Write};

use crossbeam_channel::{Receiver, bounded};
use sawmill_footer::RangeReader;
use sawmill_profile::{Control, Error, ThreadFailure, joined, spawn_scoped};

/// Bytes of a block of text. A range is read with at most two blocks more than it has.
const BLOCK: usize = 256 << 10;
/// Blocks that wait to be compressed.
const AHEAD: usize = 4;

/// Decoded text. The file has no name, so it disappears with the process.
pub(in crate::delimited) struct Spool {
    file: File,
    /// The place of each block in the file, and the end of the last.
    places: Vec<u64>,
    length: u64,
}

/// Why text could not be stored.
pub(super) enum Unspooled {
    Reading(io::Error),
    Storing(io::Error),
    Stopped(Error),
}

impl From<ThreadFailure> for Unspooled {
    fn from(failure: ThreadFailure) -> Self {
        Self::Stopped(failure.into())
    }
}

impl Spool {
    /// Stores a stream: one thread reads it, another compresses and writes.
    ///
    /// # Errors
    /// Errors of the stream and of the temporary file; a raised cancel flag.
    pub(super) fn write(
        mut text: impl Read + Send,
        control: &Control<'_>,
    ) -> std::result::Result<Self, Unspooled> {
        let file = tempfile::tempfile().map_err(Unspooled::Storing)?;
        let (sender, blocks) = bounded::<Vec<u8>>(AHEAD);
        std::thread::scope(|scope| {
            let storing = move || store(file, &blocks).map_err(Unspooled::Storing);
            let writer = spawn_scoped(scope, "spool", storing)?;
            let mut read = || loop {
                control.check().map_err(Unspooled::Stopped)?;
                let mut block = Vec::with_capacity(BLOCK);
                let mut piece = text.by_ref().take(BLOCK as u64);
                piece.read_to_end(&mut block).map_err(Unspooled::Reading)?;
                control.phase().add_bytes(block.len() as u64);
                let is_last = block.len() < BLOCK;
                // The writer is gone after an error, which it returns.
                if sender.send(block).is_err() || is_last {
                    return Ok(());
                }
            };
            let outcome = read();
            drop(sender);
            let stored = joined(writer);
            outcome.and(stored)
        })
    }

    /// The number of bytes of the text.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Decompresses a block into a buffer of its length.
    fn block(&self, number: usize, stored: &mut Vec<u8>, text: &mut [u8]) -> io::Result<()> {
        let place = |number: usize| self.places.get(number).copied().ok_or(io::ErrorKind::UnexpectedEof);
        let (from, to) = (place(number)?, place(number + 1)?);
        stored.resize((to - from) as usize, 0);
        self.file.read_exact_at(from, stored)?;
        if stored.len() == text.len() {
            text.copy_from_slice(stored);
            return Ok(());
        }
        match lz4_flex::block::decompress_into(stored, text) {
            Ok(length) if length == text.len() => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the temporary file was damaged")),
        }
    }
}

/// Compresses and writes blocks. A block that would not become smaller is stored uncompressed.
fn store(mut file: File, blocks: &Receiver<Vec<u8>>) -> io::Result<Spool> {
    let mut compressed = vec![0; lz4_flex::block::get_maximum_output_size(BLOCK)];
    let (mut places, mut end, mut length) = (vec![0], 0, 0);
    for block in blocks {
        if block.is_empty() {
            continue;
        }
        let size = lz4_flex::block::compress_into(&block, &mut compressed).unwrap_or(usize::MAX);
        let stored = if size < block.len() { &compressed[..size] } else { &block };
        file.write_all(stored)?;
        end += stored.len() as u64;
        length += block.len() as u64;
        places.push(end);
    }
    Ok(Spool { file, places, length })
}

impl RangeReader for Spool {
    fn len(&self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        thread_local! {
            static SCRATCH: RefCell<(Vec<u8>, Vec<u8>)> = const { RefCell::new((Vec::new(), Vec::new())) };
        }
        if offset.checked_add(buffer.len() as u64).is_none_or(|end| end > self.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        SCRATCH.with_borrow_mut(|(stored, text)| {
            let mut filled = 0;
            while filled < buffer.len() {
                let at = offset + filled as u64;
                let (number, within) = ((at / BLOCK as u64) as usize, (at % BLOCK as u64) as usize);
                let length = (self.length - (at - within as u64)).min(BLOCK as u64) as usize;
                let few = (length - within).min(buffer.len() - filled);
                if few == length {
                    self.block(number, stored, &mut buffer[filled..filled + few])?;
                } else {
                    text.resize(length, 0);
                    self.block(number, stored, text)?;
                    buffer[filled..filled + few].copy_from_slice(&text[within..within + few]);
                }
                filled += few;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use sawmill_profile::Profile;

    use super::*;

    #[test]
    fn any_range_of_the_text_is_read() {
        let mut text = vec![0; 3 * BLOCK + 17];
        for (at, byte) in text.iter_mut().enumerate() {
            // The second block does not compress.
            *byte = if at / BLOCK == 1 { ((at * 2_654_435_761) >> 13) as u8 } else { b'a' + (at % 7) as u8 };
        }
        let (cancel, phase) = (AtomicBool::new(false), Profile::new().phase("spool"));
        let control = Control::new(&cancel, &phase);
        let spool = Spool::write(text.as_slice(), &control).unwrap_or_else(|_| panic!("stored"));
        assert_eq!(spool.length(), text.len() as u64);
        for (from, to) in [(0, 0), (0, 1), (5, BLOCK), (BLOCK - 1, 2 * BLOCK + 1), (0, text.len())] {
            let mut read = vec![0; to - from];
            spool.read_exact_at(from as u64, &mut read).unwrap();
            assert!(read == text[from..to], "{from}..{to}");
        }
        assert!(spool.read_exact_at(text.len() as u64, &mut [0]).is_err());
        cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(matches!(Spool::write(text.as_slice(), &control), Err(Unspooled::Stopped(_))));
    }
}
