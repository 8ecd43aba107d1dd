//! Opens one file after another as fast as possible: in batches of dozens where the system supports it
//! ([`crate::open::ends`]), otherwise with three system calls per file besides closing it. It reuses buffers
//! and what decoding one footer leaves for the next ([`crate::decode::carried`]).
//!
//! ```text
//! open ─▶ length, by a seek ─▶ one read of about the last footer's length ─▶ decode
//!   │            └── or all of it for some dozen files together ─────────────────────────────────────────────────┘
//!   └── anything unusual ──▶ Footer::open_with, which reports it
//! ```

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::decode::carried::Carried;
use crate::error::Error;
use crate::footer::Footer;
use crate::memory::allocate;
use crate::open::buffer::FooterBytes;
use crate::open::ends::Ends;
use crate::open::source::{self, RangeReader};
use crate::open::tail;
use crate::options::{Options, PageIndexPolicy};

/// The fewest bytes to read first.
const MIN_TAIL: usize = 1024;

/// See the module's description.
pub(crate) struct Opener<'o> {
    options: &'o Options,
    carried: Carried,
    /// The bytes to read first from the next file's end, and their upper limit.
    tail: usize,
    most: usize,
    /// The previous footer's bytes, overwritten unless a caller has kept that footer.
    buffer: Arc<Vec<u8>>,
    /// The previous file's name, reused likewise.
    name: Arc<String>,
    /// The ends of the current batch of files.
    ends: Ends,
    /// Whether a footer was opened, so that the next ones may be alike.
    expects: bool,
}

impl<'o> Opener<'o> {
    /// Prepares for this many files, which may be shared with other openers.
    pub fn new(options: &'o Options, files: usize) -> Self {
        let tail = options.tail_hint.max(tail::TAIL_LEN as usize);
        // Page indexes need a second read from the file.
        let alone = !matches!(options.page_indexes, PageIndexPolicy::None);
        Self {
            options,
            carried: Carried::first_of_many(),
            most: tail,
            tail,
            buffer: Arc::default(),
            name: Arc::default(),
            ends: Ends::new(if alone { 1 } else { files }),
            expects: false,
        }
    }

    /// How many files to pass to [`Self::look_at`] at a time.
    pub fn at_a_time(&self) -> usize {
        if self.expects { self.ends.at_a_time(self.tail) } else { 1 }
    }

    /// Reads ahead for files that are opened next, one after the other.
    pub fn look_at<P: AsRef<Path>>(&mut self, files: &[P]) {
        self.ends.read(files, self.tail);
    }

    /// Opens file `place` of the current batch like [`Footer::open_with`].
    pub fn open(&mut self, place: usize, path: &Path) -> Result<Footer, Error> {
        // Errors, directories, pipes and footers longer than expected are rare; the general path handles
        // them.
        let (file, (len, metadata)) = match self.looked_at(place) {
            Some(found) => (None, found),
            None => match self.usual(path) {
                Ok(Some((file, found))) => (Some(file), found),
                Ok(None) | Err(_) => {
                    let footer = Footer::open_with(path, self.options)?;
                    self.expect(footer.footer_len());
                    return Ok(footer);
                }
            },
        };
        let name = Some(self.name_of(path));
        let footer = Footer::decode_after(metadata, self.options, name, Some(len), &mut self.carried);
        match file {
            Some(file) => footer?.with_page_indexes(&file, self.options),
            None => footer,
        }
    }

    /// The length and footer bytes of a file in the batch, if they were read.
    fn looked_at(&mut self, place: usize) -> Option<(u64, FooterBytes)> {
        let buffer = room(&mut self.buffer, 0)?;
        let (file_len, read) = self.ends.take(place, buffer)?;
        let footer = metadata_range(buffer.get(..read)?, file_len)?;
        if footer.len() as u64 > self.options.max_footer {
            return None;
        }
        self.expect(footer.len());
        Some((file_len, self.share(footer)?))
    }

    /// The file, its length and its footer's bytes, if one read was enough.
    fn usual(&mut self, path: &Path) -> io::Result<Option<(File, (u64, FooterBytes))>> {
        let mut file = source::open_to_read(path)?;
        // For a directory or device this is not a length, or an error; the read or the tail reveals it.
        let file_len = file.seek(SeekFrom::End(0))?;
        let len = usize::try_from(file_len).unwrap_or(usize::MAX).min(self.tail);
        let Some(buffer) = room(&mut self.buffer, len) else { return Ok(None) };
        let suffix = &mut buffer[..len];
        file.read_exact_at(file_len - len as u64, suffix)?;
        let Some(range) = metadata_range(suffix, file_len) else { return Ok(None) };
        if range.len() as u64 > self.options.max_footer {
            return Ok(None);
        }
        self.expect(range.len());
        Ok(self.share(range).map(|metadata| (file, (file_len, metadata))))
    }

    /// The file's name, stored in place of the previous one unless a caller has kept that.
    fn name_of(&mut self, path: &Path) -> Arc<String> {
        // Most names are UTF-8, and checking that is faster than the lossy conversion.
        let name = path.to_str().map_or_else(|| path.to_string_lossy(), Cow::Borrowed);
        match Arc::get_mut(&mut self.name) {
            Some(before) => {
                before.clear();
                before.push_str(&name);
            }
            None => self.name = Arc::new(name.into_owned()),
        }
        Arc::clone(&self.name)
    }

    /// The part of the buffer that holds the footer.
    fn share(&mut self, footer: Range<usize>) -> Option<FooterBytes> {
        match self.buffer.len() <= 2 * footer.len() + MIN_TAIL {
            true => FooterBytes::part_of(&self.buffer, footer),
            // Neither a kept footer nor the next one should hold much more memory than it needs.
            false => std::mem::take(&mut self.buffer).get(footer).map(FooterBytes::from),
        }
    }

    /// Expects the next footer to be about `len` bytes long, like this one.
    fn expect(&mut self, len: usize) {
        let about = len + len / 32 + 64;
        self.tail = about.max(MIN_TAIL).min(self.most);
        self.expects = true;
    }
}

/// A buffer of at least `len` bytes; a new one if a caller has kept the previous footer and its bytes. `None`
/// if memory is short.
fn room(buffer: &mut Arc<Vec<u8>>, len: usize) -> Option<&mut Vec<u8>> {
    if Arc::strong_count(buffer) > 1 {
        *buffer = Arc::default();
    }
    let buffer = Arc::get_mut(buffer)?;
    if buffer.len() < len {
        *buffer = Vec::new();
        *buffer = allocate::zeroed(len)?;
    }
    Some(buffer)
}

/// The range of the metadata within the last bytes of a file, if they contain all of it.
fn metadata_range(suffix: &[u8], file_len: u64) -> Option<Range<usize>> {
    let metadata_len = usize::try_from(tail::metadata_len(suffix, file_len).ok()?).ok()?;
    let end = suffix.len() - tail::TAIL_LEN as usize;
    Some(end.checked_sub(metadata_len)?..end)
}
