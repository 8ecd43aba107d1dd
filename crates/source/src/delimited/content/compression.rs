//! Compressed files: recognised by their first bytes, decompressed from the first to the last.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

use super::lz4_frames::Lz4Frames;

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
const MAGIC: usize = 10;

/// Frames to skip, of Zstandard or LZ4, that are passed to tell the compression.
const MAX_SKIPPED: usize = 16;

/// The longest window of a Zstandard frame, as a power of two: the format's on 64-bit machines.
const MAX_WINDOW_LENGTH: u32 = if cfg!(target_pointer_width = "64") { 31 } else { 30 };

impl Compression {
    /// The compression of a file of this length, and its first bytes. `read` fills a buffer from a place of the file.
    ///
    /// # Errors
    /// Errors of `read`.
    pub(in crate::delimited) fn of_file(
        length: u64,
        read: impl Fn(u64, &mut [u8]) -> io::Result<()>,
    ) -> io::Result<(Self, Vec<u8>)> {
        let start_at = |place: u64| -> io::Result<Vec<u8>> {
            let mut start = vec![0; length.saturating_sub(place).min(MAGIC as u64) as usize];
            if !start.is_empty() {
                read(place, &mut start)?;
            }
            Ok(start)
        };
        let beginning = start_at(0)?;
        let (mut at, mut start) = (0_u64, beginning.clone());
        for _ in 0..MAX_SKIPPED {
            // Zstandard and LZ4 have the same frames to skip: the one after them tells.
            let [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d, ..] = *start else { break };
            at = at.saturating_add(8 + u64::from(u32::from_le_bytes([a, b, c, d])));
            start = start_at(at)?;
        }
        let compression = match Self::new(&start) {
            Self::Lz4 => Self::Lz4,
            _ => Self::new(&beginning),
        };
        Ok((compression, beginning))
    }

    /// The compression of a file that begins with these bytes.
    fn new(beginning: &[u8]) -> Self {
        // Text may begin with BZh, but not with the rest.
        let is_bzip2 = |magic: &[u8; 6]| beginning.starts_with(b"BZh") && beginning.get(4..10) == Some(magic);
        match beginning {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // A frame, or one to skip, as parallel compressors write first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            // A frame, and the older form of one, as `lz4 -l` writes it.
            [0x04, 0x22, 0x4d, 0x18, ..] | [0x02, 0x21, 0x4c, 0x18, ..] => Self::Lz4,
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
            Self::Gzip => Box::new(GzipMembers(Some(GzDecoder::new(bytes)))),
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes)?;
                // By default the library refuses windows of more than 128 MiB, and `zstd --long` makes them.
                decoder.window_log_max(MAX_WINDOW_LENGTH)?;
                Box::new(decoder)
            }
            Self::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(bytes)),
            Self::Xz => Box::new(lzma_rust2::XzReader::new(bytes, true)),
            Self::Lz4 => Box::new(Lz4Frames::new(bytes)),
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

/// Members of gzip: the decoder ends after each. Zeros may follow, with which some writers pad files;
/// anything else is not skipped, as it may be rows.
struct GzipMembers<R: BufRead>(Option<GzDecoder<R>>);

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            match after_zeros(member.get_mut())? {
                None => return Ok(0),
                // The first byte of the next member.
                Some(0x1f) => self.0 = self.0.take().map(|member| GzDecoder::new(member.into_inner())),
                Some(_) => {
                    let what = "bytes that are not gzip follow the compressed data";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
            }
        }
        Ok(0)
    }
}

/// The next byte that is not zero, which is not taken.
fn after_zeros(bytes: &mut impl BufRead) -> io::Result<Option<u8>> {
    loop {
        let next = bytes.fill_buf()?;
        let zeros = next.iter().take_while(|byte| **byte == 0).count();
        let (other, ended) = (next.get(zeros).copied(), next.is_empty());
        bytes.consume(zeros);
        if other.is_some() || ended {
            return Ok(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::GzEncoder;

    use super::*;

    /// Decompresses gzip, with these bytes after it.
    fn gunzipped(text: &str, after: &[u8]) -> Result<String, String> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        let compressed = [encoder.finish().unwrap().as_slice(), after].concat();
        let mut decoder = Compression::Gzip.decoder(Box::new(io::Cursor::new(compressed))).unwrap();
        let mut read = String::new();
        decoder.read_to_string(&mut read).map_err(|error| error.to_string())?;
        Ok(read)
    }

    #[test]
    fn what_follows_gzip_is_more_of_it_or_zeros() {
        let mut second = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        second.write_all(b"3,4\n").unwrap();
        let second = second.finish().unwrap();
        assert_eq!(gunzipped("1,2\n", b"").unwrap(), "1,2\n");
        assert_eq!(gunzipped("1,2\n", &[0; 700_000]).unwrap(), "1,2\n");
        assert_eq!(gunzipped("1,2\n", &second).unwrap(), "1,2\n3,4\n");
        assert_eq!(gunzipped("1,2\n", &[&[0; 5], second.as_slice()].concat()).unwrap(), "1,2\n3,4\n");
        assert!(gunzipped("1,2\n", b"x").unwrap_err().contains("not gzip"));
        assert!(gunzipped("1,2\n", &second[..12]).is_err());
    }

    #[test]
    fn long_windows_and_the_older_form_of_lz4_are_read() {
        let text = "id,name\n".to_owned() + &"1,x\n".repeat(100);
        let mut long = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        long.window_log(28).unwrap();
        long.long_distance_matching(true).unwrap();
        long.write_all(text.as_bytes()).unwrap();
        let block = lz4_flex::block::compress(text.as_bytes());
        let older = [&[0x02, 0x21, 0x4c, 0x18][..], &(block.len() as u32).to_le_bytes(), &block].concat();
        for compressed in [long.finish().unwrap(), older] {
            let mut read = String::new();
            let decoder = Compression::new(&compressed).decoder(Box::new(io::Cursor::new(compressed)));
            decoder.unwrap().read_to_string(&mut read).unwrap();
            assert_eq!(read, text);
        }
    }

    #[test]
    fn compressed_text_that_is_cut_off_anywhere_is_refused() {
        let text = b"1,2\n3,4\n";
        let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        bzip2.write_all(text).unwrap();
        let mut xz = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
        xz.write_all(text).unwrap();
        let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
        lz4.write_all(text).unwrap();
        for whole in [
            gzip.finish().unwrap(),
            bzip2.finish().unwrap(),
            xz.finish().unwrap(),
            lz4.finish().unwrap(),
            zstd::encode_all(&text[..], 1).unwrap(),
        ] {
            let compression = Compression::new(&whole);
            let read = |bytes: &[u8]| {
                let mut text = Vec::new();
                let mut decoder = compression.decoder(Box::new(io::Cursor::new(bytes.to_vec()))).unwrap();
                decoder.read_to_end(&mut text).map(|_| text)
            };
            let two = [whole.as_slice(), &whole].concat();
            assert_eq!(read(&two).unwrap(), text.repeat(2), "{compression}");
            for end in (1..two.len()).filter(|end| *end != whole.len()) {
                assert!(read(&two[..end]).is_err(), "{end} of {} bytes of {compression}", two.len());
            }
        }
    }

    #[test]
    fn the_frame_after_those_to_skip_tells_zstandard_from_lz4() {
        let skipped = b"\x5a\x2a\x4d\x18\x03\0\0\0abc".repeat(2);
        let of = |rest: &[u8]| {
            let file = [skipped.as_slice(), rest].concat();
            let read = |at: u64, buffer: &mut [u8]| {
                buffer.copy_from_slice(&file[at as usize..at as usize + buffer.len()]);
                Ok(())
            };
            Compression::of_file(file.len() as u64, read).unwrap().0
        };
        assert_eq!(of(b"\x02\x21\x4c\x18\0"), Compression::Lz4);
        assert_eq!(of(b"\x04\x22\x4d\x18\0"), Compression::Lz4);
        assert_eq!(of(b"\x28\xb5\x2f\xfd\0"), Compression::Zstd);
        assert_eq!(of(b""), Compression::Zstd);
        assert_eq!(of(b"\x5a\x2a\x4d\x18\xff\xff\xff\xff"), Compression::Zstd);
    }

    #[test]
    fn text_that_begins_like_a_magic_number_is_text() {
        assert_eq!(Compression::new(b"BZh9,name\n1,2"), Compression::None);
        assert_eq!(Compression::new(b"BZh91AY&SY\x01"), Compression::Bzip2);
        assert_eq!(Compression::new(b""), Compression::None);
        assert_eq!(Compression::new(b"\x1f\x8b\x08"), Compression::Gzip);
    }
}
