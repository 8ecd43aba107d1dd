//! Opens one file after another as fast as it can: three calls of the system a file beside closing it,
//! buffers that are used again, and what one footer's decoding leaves for the next ([`crate::carried`]).
//!
//! ```text
//! open, within the directory of the file before ─▶ length, by a seek ─▶ one read of about the last footer's length ─▶ decode
//!   └── whatever is unusual about it ──▶ Footer::open_with, which says what
//! ```

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use crate::buffer::FooterBytes;
use crate::carried::Carried;
use crate::directory::Directory;
use crate::error::Error;
use crate::footer::Footer;
use crate::options::Options;
use crate::source::RangeReader;
use crate::tail;

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
    /// Where the file before was opened.
    directory: Directory,
}

impl<'o> Opener<'o> {
    pub fn new(options: &'o Options) -> Self {
        let tail = options.tail_hint.max(tail::TAIL_LEN as usize);
        let carried = Carried::first_of_many();
        let directory = Directory::default();
        Self { options, carried, most: tail, tail, buffer: Arc::default(), directory }
    }

    /// As [`Footer::open_with`].
    pub fn open(&mut self, path: &Path) -> Result<Footer, Error> {
        // Errors, directories, pipes and footers longer than expected are rare, and others' business.
        match self.usual(path) {
            Ok(Some((file, len, metadata))) => {
                let name = path.to_string_lossy();
                Footer::decode_after(metadata, self.options, Some(&name), Some(len), &mut self.carried)?
                    .with_page_indexes(&file, self.options)
            }
            Ok(None) | Err(_) => {
                let footer = Footer::open_with(path, self.options)?;
                self.expect(footer.footer_len());
                Ok(footer)
            }
        }
    }

    /// The file, its length and its footer's bytes, if one read has got them.
    fn usual(&mut self, path: &Path) -> io::Result<Option<(File, u64, FooterBytes)>> {
        let mut file = self.directory.open_to_read(path)?;
        // Of a directory or a device this is no length, or an error; the read or the tail tells.
        let file_len = file.seek(SeekFrom::End(0))?;
        let len = usize::try_from(file_len).unwrap_or(usize::MAX).min(self.tail);
        // Whoever has kept the footer before has its bytes.
        if Arc::get_mut(&mut self.buffer).is_none() {
            self.buffer = Arc::default();
        }
        let Some(buffer) = Arc::get_mut(&mut self.buffer) else { return Ok(None) };
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        let room = buffer.len();
        let suffix = &mut buffer[..len];
        file.read_exact_at(file_len - len as u64, suffix)?;
        let Ok(metadata_len) = tail::metadata_len(suffix, file_len) else { return Ok(None) };
        let end = len - tail::TAIL_LEN as usize;
        let start = usize::try_from(metadata_len).ok().and_then(|metadata| end.checked_sub(metadata));
        let Some(start) = start else { return Ok(None) };
        self.expect(end - start);
        let metadata = match room <= 2 * (end - start) + LEAST_TAIL {
            true => FooterBytes::from(Arc::clone(&self.buffer)).slice(start..end),
            // A footer that is kept shall not keep much more than itself, nor shall the next one.
            false => std::mem::take(&mut self.buffer).get(start..end).map(FooterBytes::from),
        };
        Ok(metadata.map(|metadata| (file, file_len, metadata)))
    }

    /// Expects the next footer to be about as long as this one of `len` bytes.
    fn expect(&mut self, len: usize) {
        let about = len + len / 8 + 64;
        self.tail = about.max(LEAST_TAIL).min(self.most);
    }
}
