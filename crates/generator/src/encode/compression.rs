//! The codecs of pages.
//!
//! (Parquet format, `Compression.md`. LZ4 is written as `LZ4_RAW`, the block format: the older `LZ4`
//! codec was never specified.)

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

/// The compression of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// Snappy.
    Snappy,
    /// LZ4, the block format.
    Lz4,
    /// Zstandard at this level, -7 (fastest) to 22.
    Zstd(i32),
    /// Gzip at level 6.
    Gzip,
    /// Brotli at quality 1, as in the `parquet` crate.
    Brotli,
}

/// The default level of `zstd`, as in the `parquet` crate.
const ZSTD_LEVEL: i32 = 1;
const ZSTD_LEVELS: std::ops::RangeInclusive<i32> = -7..=22;
const GZIP_LEVEL: u32 = 6;
const BROTLI_QUALITY: u32 = 1;
/// Base-2 logarithm of Brotli's window.
const BROTLI_WINDOW: u32 = 22;

impl Compression {
    /// `CompressionCodec` of `parquet.thrift`.
    pub(crate) fn id(self) -> i32 {
        match self {
            Self::None => 0,
            Self::Snappy => 1,
            Self::Gzip => 2,
            Self::Brotli => 4,
            Self::Zstd(_) => 6,
            Self::Lz4 => 7,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Snappy => f.write_str("snappy"),
            Self::Lz4 => f.write_str("lz4"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
            Self::Gzip => f.write_str("gzip"),
            Self::Brotli => f.write_str("brotli"),
        }
    }
}

impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "none" => Self::None,
            "snappy" => Self::Snappy,
            "lz4" => Self::Lz4,
            "gzip" => Self::Gzip,
            "brotli" => Self::Brotli,
            "zstd" => Self::Zstd(ZSTD_LEVEL),
            _ => match text.strip_prefix("zstd:").map(str::parse) {
                Some(Ok(level)) if ZSTD_LEVELS.contains(&level) => Self::Zstd(level),
                Some(_) => {
                    let (low, high) = (ZSTD_LEVELS.start(), ZSTD_LEVELS.end());
                    return Err(format!("{text:?} is not a zstd level: use {low} to {high}"));
                }
                None => {
                    return Err(format!(
                        "{text:?} is not a compression: use none, snappy, lz4, zstd, zstd:LEVEL, gzip or \
                         brotli"
                    ));
                }
            },
        })
    }
}

/// A codec with its working memory, reused for every page.
pub(crate) enum Compressor {
    None,
    Snappy(Box<snap::raw::Encoder>),
    Lz4,
    Zstd(zstd::bulk::Compressor<'static>),
    Gzip,
    Brotli,
}

impl Compressor {
    pub(crate) fn new(compression: Compression) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::None,
            Compression::Snappy => Self::Snappy(Box::new(snap::raw::Encoder::new())),
            Compression::Lz4 => Self::Lz4,
            Compression::Zstd(level) => Self::Zstd(zstd::bulk::Compressor::new(level)?),
            Compression::Gzip => Self::Gzip,
            Compression::Brotli => Self::Brotli,
        })
    }

    /// Whether pages stay uncompressed.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Appends `input`, compressed.
    pub(crate) fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        /// Reserves room for the longest result, and keeps what `write` fills of it.
        fn into_room(
            out: &mut Vec<u8>,
            most: usize,
            write: impl FnOnce(&mut [u8]) -> io::Result<usize>,
        ) -> io::Result<()> {
            let at = out.len();
            out.resize(at + most, 0);
            let written = write(&mut out[at..])?;
            out.truncate(at + written);
            Ok(())
        }
        match self {
            Self::None => out.extend_from_slice(input),
            Self::Snappy(encoder) => {
                let most = snap::raw::max_compress_len(input.len());
                into_room(out, most, |room| encoder.compress(input, room).map_err(io::Error::other))?;
            }
            Self::Lz4 => {
                let most = lz4_flex::block::get_maximum_output_size(input.len());
                into_room(out, most, |room| {
                    lz4_flex::block::compress_into(input, room).map_err(io::Error::other)
                })?;
            }
            Self::Zstd(context) => {
                let most = zstd::zstd_safe::compress_bound(input.len());
                into_room(out, most, |room| context.compress_to_buffer(input, room))?;
            }
            Self::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                let mut encoder = flate2::write::GzEncoder::new(out, level);
                encoder.write_all(input)?;
                encoder.try_finish()?;
            }
            Self::Brotli => {
                let buffer = input.len().clamp(1, 1 << 16);
                let mut encoder = brotli::CompressorWriter::new(out, buffer, BROTLI_QUALITY, BROTLI_WINDOW);
                encoder.write_all(input)?;
                encoder.flush()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Read;

    fn decompress(compression: Compression, bytes: &[u8], length: usize) -> Vec<u8> {
        let mut out = Vec::new();
        match compression {
            Compression::None => out.extend_from_slice(bytes),
            Compression::Snappy => out = snap::raw::Decoder::new().decompress_vec(bytes).unwrap(),
            Compression::Lz4 => out = lz4_flex::block::decompress(bytes, length).unwrap(),
            Compression::Zstd(_) => out = zstd::bulk::decompress(bytes, length).unwrap(),
            Compression::Gzip => {
                flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).unwrap();
            }
            Compression::Brotli => {
                brotli::Decompressor::new(bytes, 4096).read_to_end(&mut out).unwrap();
            }
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn decompressing_returns_the_input(
            input in proptest::collection::vec(0u8..4, 0..5000),
            codec in prop_oneof![
                Just("none"), Just("snappy"), Just("lz4"), Just("zstd"), Just("zstd:9"), Just("gzip"),
                Just("brotli")
            ],
        ) {
            let compression: Compression = codec.parse().unwrap();
            let mut compressor = Compressor::new(compression).unwrap();
            for _ in 0..2 {
                let mut out = b"before".to_vec();
                compressor.compress(&input, &mut out).unwrap();
                prop_assert_eq!(&out[..6], b"before");
                prop_assert_eq!(&decompress(compression, &out[6..], input.len()), &input);
            }
        }
    }

    #[test]
    fn names_are_parsed_and_the_error_for_a_wrong_name_lists_them() {
        for name in ["none", "snappy", "lz4", "zstd:1", "zstd:-7", "zstd:22", "gzip", "brotli"] {
            assert_eq!(name.parse::<Compression>().unwrap().to_string(), name);
        }
        assert!("zstd:23".parse::<Compression>().unwrap_err().contains("22"));
        assert!("lzo".parse::<Compression>().unwrap_err().contains("snappy"));
    }
}
