//! Many reads at a time, by a ring of requests to Linux (io_uring) with registered buffers.
//!
//! ```text
//! reads ─▶ free buffers ─▶ queue of requests ──one call──▶ the disk ──▶ answers in any order ─▶ free buffers
//! ```
//!
//! In random order a ring gets about three times as many cold reads a second as two threads of `pread`; in ascending
//! order no more (`docs/csv.md`, scattered reads). The ring of `sawmill-footer` opens files into slots as well, by
//! separate requests; this one has a library for them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, squeue, types};

/// Requests at a time.
const DEPTH: usize = 128;

/// The most bytes of a read, and the bytes of each buffer.
pub(super) const MAX_LENGTH: usize = 8 << 10;

/// A read of at most [`MAX_LENGTH`] bytes.
pub(super) struct Read<'f> {
    pub file: &'f File,
    pub at: u64,
    pub len: usize,
}

/// See the module's description.
pub(super) struct Ring {
    ring: IoUring,
    /// `DEPTH` buffers of `MAX_LENGTH` bytes; empty once they were given up.
    buffers: Vec<u8>,
    registered: bool,
    /// Requests without an answer, whose buffers the kernel may write to.
    waiting: usize,
}

/// A request that was not answered yet.
#[derive(Clone, Copy, Default)]
struct Asked {
    read: usize,
    /// Bytes in earlier answers.
    got: usize,
}

impl Ring {
    /// Creates a ring.
    ///
    /// # Errors
    /// The system is too old for rings or forbids them.
    pub(super) fn new() -> io::Result<Self> {
        let ring = IoUring::new(DEPTH as u32)?;
        let mut buffers = vec![0_u8; DEPTH * MAX_LENGTH];
        let all: Vec<libc::iovec> = buffers
            .chunks_exact_mut(MAX_LENGTH)
            .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() })
            .collect();
        // SAFETY: the vector never grows, and is freed only when no request is without an answer.
        let registered = unsafe { ring.submitter().register_buffers(&all) }.is_ok();
        Ok(Self { ring, buffers, registered, waiting: 0 })
    }

    /// Reads all of `reads`, and passes the position and the bytes of each to `done`, in any order.
    ///
    /// # Errors
    /// The first read that failed; those that were not passed on may be repeated in another way.
    pub(super) fn read(&mut self, reads: &[Read<'_>], mut done: impl FnMut(usize, &[u8])) -> io::Result<()> {
        let mut free: Vec<usize> = (0..self.buffers.len() / MAX_LENGTH).collect();
        // After a failure that left requests behind, their buffers are not known to be free.
        if free.is_empty() || self.waiting > 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut asked = [Asked::default(); DEPTH];
        let (mut next, mut failure) = (0, None);
        let mut answers = Vec::with_capacity(DEPTH);
        loop {
            while failure.is_none()
                && next < reads.len()
                && let Some(buffer) = free.pop()
            {
                asked[buffer] = Asked { read: next, got: 0 };
                self.ask(reads, buffer, asked[buffer])?;
                next += 1;
            }
            if self.waiting == 0 {
                return failure.map_or(Ok(()), Err);
            }
            self.wait()?;
            answers.clear();
            answers
                .extend(self.ring.completion().map(|answer| (answer.user_data() as usize, answer.result())));
            self.waiting -= answers.len();
            for (buffer, result) in answers.drain(..) {
                let Asked { read, got } = asked[buffer];
                let len = reads[read].len;
                let got = match usize::try_from(result) {
                    Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(more) => Ok(got + more),
                    Err(_) => Err(io::Error::from_raw_os_error(-result)),
                };
                match got {
                    Ok(got) if got < len && failure.is_none() => {
                        asked[buffer].got = got;
                        self.ask(reads, buffer, asked[buffer])?;
                        continue;
                    }
                    Ok(got) if got >= len => {
                        let start = buffer * MAX_LENGTH;
                        done(read, self.buffers.get(start..start + len).unwrap_or_default());
                    }
                    Ok(_) => {}
                    Err(error) => {
                        failure.get_or_insert(error);
                    }
                }
                free.push(buffer);
            }
        }
    }

    /// Queues the rest of a read.
    fn ask(&mut self, reads: &[Read<'_>], buffer: usize, Asked { read, got }: Asked) -> io::Result<()> {
        let Read { file, at, len } = &reads[read];
        let (file, start) = (types::Fd(file.as_raw_fd()), buffer * MAX_LENGTH);
        let Some(target) = self.buffers.get_mut(start + got..start + len.min(&MAX_LENGTH)) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let (len, target, at) = (target.len() as u32, target.as_mut_ptr(), at + got as u64);
        let request: squeue::Entry = match self.registered {
            true => opcode::ReadFixed::new(file, target, len, buffer as u16).offset(at).build(),
            false => opcode::Read::new(file, target, len).offset(at).build(),
        };
        // SAFETY: the target is within one buffer, which nothing else reads or writes until the answer has
        // come, and which is not freed before: see `give_up`. The kernel takes the file when it is sent, before
        // `reads` ends.
        let queued = unsafe { self.ring.submission().push(&request.user_data(buffer as u64)) };
        // There are as many places in the queue as buffers.
        queued.map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.waiting += 1;
        Ok(())
    }

    /// Sends the queued requests, and waits for a quarter of the answers.
    fn wait(&mut self) -> io::Result<()> {
        loop {
            match self.ring.submit_and_wait((self.waiting / 4).max(1)) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The queue of answers is full.
                Err(error)
                    if error.raw_os_error() == Some(libc::EBUSY) && !self.ring.completion().is_empty() =>
                {
                    return Ok(());
                }
                Err(error) => {
                    self.give_up();
                    return Err(error);
                }
            }
        }
    }

    /// Never frees the buffers, nor uses them again: requests without an answer may still write to them.
    fn give_up(&mut self) {
        std::mem::forget(std::mem::take(&mut self.buffers));
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.waiting > 0 {
            self.give_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_ring_returns_what_is_at_each_place() {
        let bytes: Vec<u8> = (0..1_000_000_u32).flat_map(|number| number.to_le_bytes()).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let Ok(mut ring) = Ring::new() else {
            eprintln!("skipped: the system forbids rings");
            return;
        };
        let places = (0..5000_usize)
            .map(|read| (read * 7919 * 104_729 % (bytes.len() - MAX_LENGTH), 1 + read % MAX_LENGTH));
        let places: Vec<(usize, usize)> = places.collect();
        let reads: Vec<Read<'_>> =
            places.iter().map(|(at, len)| Read { file: &file, at: *at as u64, len: *len }).collect();
        let mut seen = vec![false; reads.len()];
        ring.read(&reads, |read, found| {
            let (at, len) = places[read];
            assert_eq!(found, &bytes[at..at + len]);
            seen[read] = true;
        })
        .unwrap();
        assert!(seen.iter().all(|seen| *seen));

        // A file that was cut off fails the reads behind its end, and the ring continues.
        let behind =
            [Read { file: &file, at: 0, len: 8 }, Read { file: &file, at: bytes.len() as u64 - 4, len: 8 }];
        let failed = ring.read(&behind, |_, _| {}).unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::UnexpectedEof);
        let mut found = Vec::new();
        ring.read(&behind[..1], |_, bytes| found.extend_from_slice(bytes)).unwrap();
        assert_eq!(found, bytes[..8]);
    }
}
