//! The bytes of a text: a file's own, or the decoded bytes of a compressed file, an object or text in
//! another encoding.
//!
//! ```text
//! file, object ─ decompress ─ UTF-8 ─▶ blocks (one thread) ─ LZ4 (another) ─▶ temporary file ─▶ ranges (all threads)
//! ```
//!
//! Compressed text can be read from its start only, and units begin anywhere. It is decoded once, by one thread,
//! into a temporary file of small LZ4 blocks, which takes about as much space as the compressed file; then all
//! threads read ranges of it. A local file of UTF-8 text is read where it is.

mod compression;
mod encodings;
mod long_delimiter;
mod lz4_frames;
mod object_stream;
mod spool;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sawmill_profile::{Control, Error, Kind, Result};
use sawmill_store::{ObjectReader, open_input};

pub(super) use self::compression::Compression;
use self::encodings::{Malformed, Transcoder, Utf32};
pub(super) use self::encodings::{encoding_named, is_utf16, is_utf32};
use self::long_delimiter::ShortDelimiters;
pub(super) use self::long_delimiter::{UNIT_SEPARATOR, with_short_delimiters};
use self::object_stream::ObjectStream;
use self::spool::{Spool, Unspooled};
use super::records::dialect::Dialect;
use crate::parquet_files::opened_file::unreadable;
use crate::parquet_files::reader::Readable;
use crate::parquet_files::stamp::Stamp;

/// The bytes of a text.
pub(super) enum Content {
    /// A file of UTF-8 text.
    File { path: PathBuf, stamp: Stamp },
    /// Decoded text, and the file that it comes from, if that is on this machine.
    Decoded { text: Arc<Spool>, origin: Option<(PathBuf, Stamp)> },
}

impl Content {
    /// Opens the file for reading; `None` if it has changed since it was first opened.
    pub(super) fn reopen(&self) -> io::Result<Option<Readable>> {
        match self {
            Self::File { path, stamp } => {
                let file = open_input(path)?;
                let unchanged = Stamp::new(&file.metadata()?) == *stamp;
                Ok(unchanged.then(|| Arc::new(file) as Readable))
            }
            Self::Decoded { text, origin } => {
                let unchanged = match origin {
                    None => true,
                    Some((path, stamp)) => Stamp::new(&path.metadata()?) == *stamp,
                };
                Ok(unchanged.then(|| Arc::clone(text) as Readable))
            }
        }
    }

    /// The number of bytes of decoded text; `None` for a file that is read where it is.
    pub(super) fn decoded_length(&self) -> Option<u64> {
        match self {
            Self::File { .. } => None,
            Self::Decoded { text, .. } => Some(text.length()),
        }
    }
}

/// The format of a file, according to its first bytes and the dialect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coding<'a> {
    pub compression: Compression,
    pub encoding: Option<&'static encoding_rs::Encoding>,
    /// The dialect with its delimiter, if that has several bytes.
    pub long_delimiter: Option<(&'a Dialect, &'a str)>,
}

impl Coding<'_> {
    /// Whether its bytes are the text.
    pub(super) fn is_plain(&self) -> bool {
        self.compression == Compression::None && self.encoding.is_none() && self.long_delimiter.is_none()
    }

    /// Decodes a file.
    pub(super) fn of_file(
        &self,
        name: &str,
        path: &Path,
        stamp: Stamp,
        control: &Control<'_>,
    ) -> Result<Content> {
        let file = open_input(path).map_err(|error| unreadable(&error).at(name))?;
        let text = self.decode(Box::new(file), control);
        let text = text.map_err(|unspooled| self.failed(unspooled, name))?;
        Ok(Content::Decoded { text: Arc::new(text), origin: Some((path.to_owned(), stamp)) })
    }

    /// Decodes an object.
    pub(super) fn of_object(
        &self,
        name: &str,
        object: Arc<ObjectReader>,
        control: &Control<'_>,
    ) -> Result<Content> {
        let decoded = |object: &Arc<ObjectReader>| {
            let stream = ObjectStream::start(Arc::clone(object)).map_err(Unspooled::Reading);
            stream.and_then(|stream| self.decode(Box::new(stream), control))
        };
        let text = decoded(&object).or_else(|unspooled| match damaged(&unspooled) {
            // A new reader, which buffers no bytes, asks again for bytes that were damaged on their way.
            Some(_) => decoded(&Arc::new(ObjectReader::new(object.object().clone(), Vec::new()))),
            None => Err(unspooled),
        });
        let text = text.map_err(|unspooled| match object.fault().or(damaged(&unspooled)) {
            Some(fault) => fault.clone().into(),
            None => self.failed(unspooled, name),
        })?;
        Ok(Content::Decoded { text: Arc::new(text), origin: None })
    }

    fn decode(
        &self,
        bytes: Box<dyn Read + Send>,
        control: &Control<'_>,
    ) -> std::result::Result<Spool, Unspooled> {
        let bytes = self.compression.decoder(bytes).map_err(Unspooled::Reading)?;
        let text = Transcoder::new(bytes, self.encoding);
        match self.long_delimiter {
            None => Spool::write(text, control),
            Some((dialect, long)) => Spool::write(ShortDelimiters::new(text, dialect, long), control),
        }
    }

    fn failed(&self, unspooled: Unspooled, name: &str) -> Error {
        let error = match unspooled {
            Unspooled::Stopped(error) => return error,
            Unspooled::Storing(error) => {
                let place = std::env::temp_dir().display().to_string();
                return Error::new(Kind::Source, format!("storing the decoded text failed: {error}"))
                    .at(place)
                    .advise("free some space, or set TMPDIR to a larger disk");
            }
            Unspooled::Reading(error) => error,
        };
        if let Some(malformed) = error.get_ref().and_then(|error| error.downcast_ref::<Malformed>()) {
            return Error::new(Kind::Source, malformed.to_string())
                .at(name)
                .advise("correct the bytes, or name the encoding of the file with --text-encoding");
        }
        if let Some(utf32) = error.get_ref().and_then(|error| error.downcast_ref::<Utf32>()) {
            return utf32.error().at(name);
        }
        match self.compression {
            Compression::None => unreadable(&error).at(name),
            compression => Error::new(Kind::Source, format!("decompressing {compression} failed: {error}"))
                .at(name)
                .advise("the file is damaged or incomplete: bring it again"),
        }
    }
}

/// The store's error for bytes that do not match its checksum.
fn damaged(unspooled: &Unspooled) -> Option<&sawmill_store::Error> {
    let Unspooled::Reading(error) = unspooled else { return None };
    let error = error.get_ref()?.downcast_ref::<sawmill_store::Error>()?;
    (error.kind() == sawmill_store::Kind::Damaged).then_some(error)
}
