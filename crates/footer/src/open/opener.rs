//! Opens one file after another as fast as it can: dozens at a time where the system lets it ([`crate::open::ends`]),
//! with three calls of the system a file beside closing it where not, with buffers that are used again, and
//! with what one footer's decoding leaves for the next ([`crate::decode::carried`]).
//!
//! ```text
//! open, within the directory of the file before ─▶ length, by a seek ─▶ one read of about the last footer's length ─▶ decode
//!   │            └── or all that of some dozen files together ────────────────────────────────────────────────────┘
//!   └── whatever is unusual about it ──▶ Footer::open_with, which says what
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
use crate::open::directory::Directory;
use crate::open::ends::Ends;
use crate::open::source::RangeReader;
use crate::open::tail;
use crate::options::{Options, PageIndexPolicy};

/// Bytes read at first at least.
const LEAST_TAIL: usize = 1024;

/// See the module's description.
pub(crate) struct Opener<'o> {
    options: &'o Options,
    carried: Carried,
    /// Bytes to read from the next file's end at first, and how many they are at most.
    tail: usize,
    most: usize,
    /// The bytes of the footer before, to be written over if nobody has kept it.
    buffer: Arc<Vec<u8>>,
    /// The name of the file before, likewise.
    name: Arc<String>,
    /// Where the file before was opened.
    directory: Directory,
    /// The ends of the files at hand.
    ends: Ends,
    /// A footer was opened: the next ones may be alike.
    expects: bool,
}

impl<'o> Opener<'o> {
    /// For so many files, which other openers may share.
    pub fn new(options: &'o Options, files: usize) -> Self {
        let tail = options.tail_hint.max(tail::TAIL_LEN as usize);
        // Page indexes are read from the file once more.
        let alone = !matches!(options.page_indexes, PageIndexPolicy::None);
        Self {
            options,
            carried: Carried::first_of_many(),
            most: tail,
            tail,
            buffer: Arc::default(),
            name: Arc::default(),
            directory: Directory::default(),
            ends: Ends::new(if alone { 1 } else { files }),
            expects: false,
        }
    }

    /// How many files to [look at](Self::look_at) together.
    pub fn at_a_time(&self) -> usize {
        if self.expects { self.ends.at_a_time(self.tail) } else { 1 }
    }

    /// Takes up files that are opened next, one after the other.
    pub fn look_at<P: AsRef<Path>>(&mut self, files: &[P]) {
        self.ends.read(files, self.tail);
    }

    /// As [`Footer::open_with`] the file at a place among those looked at.
    pub fn open(&mut self, place: usize, path: &Path) -> Result<Footer, Error> {
        // Errors, directories, pipes and footers longer than expected are rare, and others' business.
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

    /// The length and the footer's bytes of a file that was looked at, if they were found.
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

    /// The file, its length and its footer's bytes, if one read has got them.
    fn usual(&mut self, path: &Path) -> io::Result<Option<(File, (u64, FooterBytes))>> {
        let mut file = self.directory.open_to_read(path)?;
        // Of a directory or a device this is no length, or an error; the read or the tail tells.
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

    /// The file's name, in place of the one before if nobody has kept that.
    fn name_of(&mut self, path: &Path) -> Arc<String> {
        // Most names are, and to see that takes less than to look for what is not.
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

    /// The part of the buffer that is a footer.
    fn share(&mut self, footer: Range<usize>) -> Option<FooterBytes> {
        match self.buffer.len() <= 2 * footer.len() + LEAST_TAIL {
            true => FooterBytes::part_of(&self.buffer, footer),
            // A footer that is kept shall not keep much more than itself, nor shall the next one.
            false => std::mem::take(&mut self.buffer).get(footer).map(FooterBytes::from),
        }
    }

    /// Expects the next footer to be about as long as this one of `len` bytes.
    fn expect(&mut self, len: usize) {
        let about = len + len / 32 + 64;
        self.tail = about.max(LEAST_TAIL).min(self.most);
        self.expects = true;
    }
}

/// A buffer of at least `len` bytes; another one if somebody has kept the footer before, and with it its
/// bytes. None where there is no memory.
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

/// Where the metadata stands in the last bytes of a file, if they hold it whole.
fn metadata_range(suffix: &[u8], file_len: u64) -> Option<Range<usize>> {
    let metadata_len = usize::try_from(tail::metadata_len(suffix, file_len).ok()?).ok()?;
    let end = suffix.len() - tail::TAIL_LEN as usize;
    Some(end.checked_sub(metadata_len)?..end)
}
