//! Reads the ends of many files, dozens at a time, by a ring of requests.
//!
//! ```text
//! paths ──▶ open all ──▶ read where the ends should be ──▶ file's length and last bytes
//!            └── reuses the previous files' slots, which closes those
//!                        └── by the previous file's length, or by the system's answer
//! ```
//!
//! Asking for a length takes about a tenth of the time of everything else. If files are about equally long,
//! the end is read at the previous file's length: a short read has found the end, and with it the length.
//! Files for which this fails are left to the code that opens them one by one.

use std::io;
use std::path::Path;

use crate::open::ring::{Request, Ring, SLOTS};
use crate::open::tail::TAIL_LEN;

/// Fewer files are opened one by one: creating a ring takes as long as opening some dozens.
const WORTH: usize = 128;

/// Longer ends are read one by one: that bounds memory, and reading dominates their time anyway.
const MAX_LENGTH: usize = 64 * 1024;

/// Bytes requested past the expected end of a file.
const BEYOND: usize = 1024;

/// How many bytes shorter than the previous file a file may be for one read to cover its footer; the read has
/// a margin of this size.
const SHORTER: u64 = 64;

/// The result of a slot if the system refuses the request.
const NOT_PERMITTED: i32 = -1;

/// See the module's description.
pub(crate) struct Ends {
    ring: Option<Ring>,
    /// The length of each file read last, and how many bytes were read.
    found: [Option<(u64, usize)>; SLOTS],
    /// The length of the previous file.
    before: u64,
    /// Whether files differ in length, so that each is asked for its own.
    asks: bool,
    /// Whether the system allows reading without updating access times.
    unnoted: bool,
}

impl Ends {
    /// For this many files.
    pub fn new(files: usize) -> Self {
        let ring = if files >= WORTH { Ring::new().ok() } else { None };
        Self { ring, found: [None; SLOTS], before: 0, asks: true, unnoted: true }
    }

    /// How many files to read at a time if `tail` bytes of each end are wanted.
    pub fn at_a_time(&self, tail: usize) -> usize {
        if self.ring.is_some() && tail <= MAX_LENGTH { SLOTS } else { 1 }
    }

    /// Reads the last `tail` bytes, or a few more, of a batch of files.
    pub fn read<P: AsRef<Path>>(&mut self, paths: &[P], tail: usize) {
        self.found = [None; SLOTS];
        if paths.len() < 2 {
            return;
        }
        let Some(mut ring) = self.ring.take() else { return };
        // Give up a ring that fails or cannot read most files.
        if self.read_by(&mut ring, paths, tail).is_ok_and(|of_use| of_use) {
            self.ring = Some(ring);
        }
    }

    /// Swaps the last bytes of file `place` of the current batch into `buffer`, if they were read. Returns
    /// the file's length and how many of the buffer's bytes are its own.
    pub fn take(&mut self, place: usize, buffer: &mut Vec<u8>) -> Option<(u64, usize)> {
        let found = self.found.get_mut(place)?.take()?;
        let slot = self.ring.as_mut()?.slots().get_mut(place)?;
        std::mem::swap(&mut slot.bytes, buffer);
        Some(found)
    }

    /// Returns false if the ring is of no use.
    fn read_by<P: AsRef<Path>>(&mut self, ring: &mut Ring, paths: &[P], tail: usize) -> io::Result<bool> {
        let mut lengths = [None; SLOTS];
        let mut requests = [None; SLOTS];
        for (place, (slot, path)) in ring.slots().iter_mut().zip(paths).enumerate() {
            let path = path.as_ref();
            lengths[place] = match self.asks {
                true => std::fs::metadata(path).ok().filter(|found| found.is_file()).map(|found| found.len()),
                false => Some(self.before),
            };
            // A kept footer keeps its buffer, which should not be much larger.
            if slot.bytes.capacity() > 2 * (tail + BEYOND) {
                slot.bytes = Vec::new();
            }
            slot.bytes.resize(tail + BEYOND, 0);
            let is_path = lengths[place].is_some() && slot.put_path(path);
            requests[place] = is_path.then_some(Request::Open { unnoted: self.unnoted });
        }
        ring.run(&requests)?;
        if self.unnoted && ring.slots().iter().any(|slot| slot.result == NOT_PERMITTED) {
            // The files have other owners.
            self.unnoted = false;
            for request in requests.iter_mut().flatten() {
                if let Request::Open { unnoted } = request {
                    *unnoted = false;
                }
            }
            ring.run(&requests)?;
        }
        for (place, slot) in ring.slots().iter().enumerate() {
            let offset = lengths[place].map(|len: u64| len.saturating_sub(tail as u64));
            requests[place] = offset.filter(|_| slot.result >= 0).map(Request::Read);
        }
        ring.run(&requests)?;
        let (mut opened, mut found, mut alike) = (0, 0, 0);
        for (place, slot) in ring.slots().iter().enumerate() {
            let Some(Request::Read(offset)) = requests[place] else { continue };
            opened += 1;
            let read = usize::try_from(slot.result).unwrap_or(0);
            let len = offset + read as u64;
            // If the buffer is full, the file may continue past it.
            if read < TAIL_LEN as usize
                || read == slot.bytes.len()
                || self.asks && lengths[place] != Some(len)
            {
                continue;
            }
            self.found[place] = Some((len, read));
            found += 1;
            alike += usize::from(len + SHORTER >= self.before && len < self.before + BEYOND as u64);
            self.before = len;
        }
        let of_use = !self.asks || found * 2 >= opened && opened > 0;
        self.asks = if self.asks { alike * 4 < opened * 3 } else { found * 4 < opened * 3 };
        Ok(of_use)
    }
}

#[cfg(test)]
mod tests {
    use super::{Ends, MAX_LENGTH, WORTH};
    use crate::open::ring::{Ring, SLOTS};

    #[test]
    fn ends_are_read_dozens_at_a_time_where_the_system_has_rings() {
        let directory = tempfile::tempdir().unwrap();
        let write = |at: usize, len: usize| {
            let path = directory.path().join(format!("{at}"));
            let bytes: Vec<u8> = (0..len).map(|byte| (byte % 251) as u8).collect();
            std::fs::write(&path, &bytes).unwrap();
            (path, bytes)
        };
        let mut ends = Ends::new(WORTH);
        let at_a_time = if Ring::new().is_ok() { SLOTS } else { 1 };
        assert_eq!(ends.at_a_time(100), at_a_time);
        assert_eq!(ends.at_a_time(MAX_LENGTH + 1), 1);
        // Lengths for which the ring asks first, then reuses the previous one, then asks again.
        for lengths in [|_: usize| 3000, |at| 3000 + at % 7, |at| at * 100, |at| 40 + at * 100] {
            let (paths, contents): (Vec<_>, Vec<_>) = (0..at_a_time).map(|at| write(at, lengths(at))).unzip();
            ends.read(&paths, 200);
            let mut found = 0;
            for (at, bytes) in contents.iter().enumerate() {
                let mut end = Vec::new();
                if let Some((len, read)) = ends.take(at, &mut end) {
                    assert_eq!(len, bytes.len() as u64);
                    assert!(read >= 8 && bytes.ends_with(&end[..read]));
                    assert!(ends.take(at, &mut end).is_none());
                    found += 1;
                }
            }
            assert!(at_a_time == 1 || found > 0, "{found} of {at_a_time}");
        }
        assert!(ends.take(SLOTS, &mut Vec::new()).is_none());
        assert_eq!(ends.at_a_time(100), at_a_time);
    }

    #[test]
    fn few_files_are_opened_one_by_one() {
        assert_eq!(Ends::new(WORTH - 1).at_a_time(100), 1);
    }
}
