//! Compressed files: told by their first bytes, decompressed from the first to the last.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::delimited) enum Compression {
    None,
    Gzip,
    Zstd,
    Bzip2,
    Xz,
    Lz4,
}

/// How many first bytes tell the compression.
pub(in crate::delimited) const MAGIC: usize = 10;

impl Compression {
    /// The compression of a file that begins with these bytes.
    pub(in crate::delimited) fn of(beginning: &[u8]) -> Self {
        // Text may begin with BZh, but not with the rest.
        let is_bzip2 = |magic: &[u8; 6]| beginning.starts_with(b"BZh") && beginning.get(4..10) == Some(magic);
        match beginning {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // A frame, or one to skip, as parallel compressors write first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0x04, 0x22, 0x4d, 0x18, ..] => Self::Lz4,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            _ if is_bzip2(b"1AY&SY") || is_bzip2(b"\x17\x72\x45\x38\x50\x90") => Self::Bzip2,
            _ => Self::None,
        }
    }

    /// Decompresses a stream: all members or frames, one after the other.
    ///
    /// # Errors
    /// The decoder cannot be made.
    pub(super) fn decoder(self, bytes: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
        let bytes = BufReader::with_capacity(256 << 10, bytes);
        Ok(match self {
            Self::None => Box::new(bytes),
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(bytes)),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(bytes)?),
            Self::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(bytes)),
            Self::Xz => Box::new(lzma_rust2::XzReader::new(bytes, true)),
            Self::Lz4 => Box::new(Lz4Frames(lz4_flex::frame::FrameDecoder::new(bytes))),
        })
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "nothing",
            Self::Gzip => "gzip",
            Self::Zstd => "Zstandard",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Lz4 => "LZ4",
        })
    }
}

/// Frames of LZ4: the decoder ends after each.
struct Lz4Frames<R: BufRead>(lz4_flex::frame::FrameDecoder<R>);

impl<R: BufRead> Read for Lz4Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.0.read(buffer)?;
            if read > 0 || buffer.is_empty() || self.0.get_mut().fill_buf()?.is_empty() {
                return Ok(read);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_begins_like_a_magic_number_is_text() {
        assert_eq!(Compression::of(b"BZh9,name\n1,2"), Compression::None);
        assert_eq!(Compression::of(b"BZh91AY&SY\x01"), Compression::Bzip2);
        assert_eq!(Compression::of(b""), Compression::None);
        assert_eq!(Compression::of(b"\x1f\x8b\x08"), Compression::Gzip);
    }
}
