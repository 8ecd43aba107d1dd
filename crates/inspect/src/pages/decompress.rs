//! Decompresses the bodies of pages whose values or levels are checked, as the `parquet` crate does.

use std::borrow::Cow;
use std::io::{self, Read};

use sawmill_footer::Codec;

/// How many bytes precede a block of Hadoop's LZ4: its size, and its size in the file.
const HADOOP_PREFIX: usize = 8;

/// Decompresses what claims to have `claimed` bytes; `None` if it has another number of them.
pub(crate) fn decompressed(codec: Codec, stored: &[u8], claimed: usize) -> Option<Cow<'_, [u8]>> {
    let all = match codec {
        Codec::Uncompressed => return Some(Cow::Borrowed(stored)),
        Codec::Snappy if snap::raw::decompress_len(stored) == Ok(claimed) => {
            snap::raw::Decoder::new().decompress_vec(stored).ok()
        }
        Codec::Gzip => whole(flate2::read::MultiGzDecoder::new(stored), claimed),
        Codec::Brotli => whole(brotli::Decompressor::new(stored, 4096), claimed),
        Codec::Zstd => whole(zstd::stream::read::Decoder::new(stored).ok()?, claimed),
        Codec::Lz4Raw => lz4_flex::block::decompress(stored, claimed).ok(),
        Codec::Lz4 => hadoop_lz4(stored, claimed, usize::MAX)
            .or_else(|| whole(lz4_flex::frame::FrameDecoder::new(stored), claimed))
            .or_else(|| lz4_flex::block::decompress(stored, claimed).ok()),
        _ => None,
    };
    all.filter(|all| all.len() == claimed).map(Cow::Owned)
}

/// The first `len` bytes, and perhaps more, of what claims to have `claimed` of them; `None` if they cannot be
/// decompressed. The rest is not looked at.
pub(crate) fn first_bytes(codec: Codec, stored: &[u8], claimed: usize, len: usize) -> Option<Cow<'_, [u8]>> {
    let read = |decoder: &mut dyn Read| {
        let mut first = vec![0; len];
        decoder.read_exact(&mut first).ok().map(|()| first)
    };
    let first = match codec {
        Codec::Uncompressed => return Some(Cow::Borrowed(stored)).filter(|stored| stored.len() >= len),
        Codec::Snappy => first_of_snappy(stored, len),
        Codec::Gzip => read(&mut flate2::read::MultiGzDecoder::new(stored)),
        Codec::Brotli => read(&mut brotli::Decompressor::new(stored, 4096)),
        Codec::Zstd => read(&mut zstd::stream::read::Decoder::with_buffer(stored).ok()?),
        Codec::Lz4Raw => first_of_lz4(stored, len),
        Codec::Lz4 => hadoop_lz4(stored, claimed, len)
            .or_else(|| read(&mut lz4_flex::frame::FrameDecoder::new(stored)))
            .or_else(|| first_of_lz4(stored, len)),
        _ => None,
    };
    first.filter(|first| first.len() >= len).map(Cow::Owned)
}

/// The first `len` bytes of Snappy's data: literals, and copies of what came before.
fn first_of_snappy(stored: &[u8], len: usize) -> Option<Vec<u8>> {
    let length = stored.iter().position(|byte| byte & 0x80 == 0)?;
    let mut rest = stored.get(length + 1..)?;
    let mut first = Vec::with_capacity(len);
    while first.len() < len {
        let (tag, behind) = rest.split_first()?;
        let tag = usize::from(*tag);
        // A literal of up to 60 bytes has its length in the tag, a longer one behind it.
        let size = match (tag & 3, tag >> 2) {
            (0, upper) => upper.saturating_sub(59),
            (1, _) => 1,
            (2, _) => 2,
            _ => 4,
        };
        let (number, behind) = behind.split_at_checked(size)?;
        let number = number.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte));
        rest = behind;
        match tag & 3 {
            0 => {
                let literal = if size == 0 { tag >> 2 } else { number }.saturating_add(1);
                first.extend_from_slice(rest.get(..literal.min(len - first.len()))?);
                rest = rest.get(literal..).unwrap_or_default();
            }
            1 => copy(&mut first, (tag >> 5) << 8 | number, ((tag >> 2) & 7) + 4, len)?,
            _ => copy(&mut first, number, (tag >> 2) + 1, len)?,
        }
    }
    Some(first)
}

/// The first `len` bytes of a block of LZ4: literals, each followed by a copy of what came before.
fn first_of_lz4(stored: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut rest = stored;
    let mut first = Vec::with_capacity(len);
    while first.len() < len {
        let (token, behind) = rest.split_first()?;
        rest = behind;
        let literal = lz4_length(token >> 4, &mut rest)?;
        first.extend_from_slice(rest.get(..literal.min(len - first.len()))?);
        if first.len() == len {
            break;
        }
        let (offset, behind) = rest.get(literal..)?.split_first_chunk()?;
        rest = behind;
        let matched = lz4_length(token & 15, &mut rest)?;
        copy(&mut first, u16::from_le_bytes(*offset).into(), matched.checked_add(4)?, len)?;
    }
    Some(first)
}

/// A length of LZ4: a nibble, and further bytes up to one that is not full.
fn lz4_length(nibble: u8, rest: &mut &[u8]) -> Option<usize> {
    let mut length = usize::from(nibble);
    if nibble < 15 {
        return Some(length);
    }
    loop {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        length = length.checked_add(usize::from(*byte))?;
        if *byte < u8::MAX {
            return Some(length);
        }
    }
}

/// Appends what is `offset` bytes before the end, up to `len` bytes in all.
fn copy(first: &mut Vec<u8>, offset: usize, size: usize, len: usize) -> Option<()> {
    let start = first.len().checked_sub(offset).filter(|_| offset > 0)?;
    for at in start..start + size.min(len - first.len()) {
        first.push(*first.get(at)?);
    }
    Some(())
}

/// The bytes that a decoder returns, and one more than claimed at most.
fn whole(decoder: impl Read, claimed: usize) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    decoder.take(claimed as u64 + 1).read_to_end(&mut all).ok().map(|_| all)
}

/// How many bytes a decoder returns; if they are more than `most`, one more than that. `None` if it fails.
pub(crate) fn length_up_to(most: u64, decoder: impl Read) -> Option<u64> {
    io::copy(&mut decoder.take(most.saturating_add(1)), &mut io::sink()).ok()
}

/// Decompresses the blocks of Hadoop's LZ4, up to the one with byte `len`.
fn hadoop_lz4(mut stored: &[u8], claimed: usize, len: usize) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    while !stored.is_empty() && all.len() < len {
        let (prefix, rest) = stored.split_at_checked(HADOOP_PREFIX)?;
        let size = |from: usize| {
            let bytes = prefix.get(from..from + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.and_then(|bytes| usize::try_from(u32::from_be_bytes(bytes)).ok())
        };
        let (block, further) = rest.split_at_checked(size(4)?)?;
        let size = size(0).filter(|size| *size <= claimed - all.len())?;
        let block = lz4_flex::block::decompress(block, size).ok()?;
        if block.len() != size {
            return None;
        }
        all.extend(block);
        stored = further;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_are_those_of_the_whole() {
        let text: Vec<u8> = (0..40_000_u32).flat_map(|n| (n * n % 977 / 3).to_le_bytes()).collect();
        let zstd = zstd::bulk::compress(&text, 1).unwrap();
        let bodies = [
            (Codec::Uncompressed, text.clone()),
            (Codec::Snappy, snap::raw::Encoder::new().compress_vec(&text).unwrap()),
            (Codec::Zstd, zstd),
            (Codec::Lz4Raw, lz4_flex::block::compress(&text)),
            (Codec::Lz4, lz4_flex::block::compress(&text)),
        ];
        for (codec, stored) in bodies {
            for len in [0, 1, 4, 5, 63, 64, 1000, 65_537, text.len()] {
                let first = first_bytes(codec, &stored, text.len(), len).unwrap();
                assert_eq!(first.get(..len), text.get(..len), "{codec:?} {len}");
            }
            assert!(first_bytes(codec, &stored, text.len(), text.len() + 1).is_none(), "{codec:?}");
            assert!(first_bytes(codec, &stored[..stored.len() / 2], text.len(), text.len()).is_none());
        }
    }

    #[test]
    fn copies_from_before_the_start_are_no_data() {
        for stored in [&[9, 1, 0][..], &[9, 1, 5], &[9, 0, b'a', 1, 2], &[9, 0xf0], &[9, 0xfc, 9, 9, 9, 9]] {
            assert!(first_of_snappy(stored, 9).is_none(), "{stored:?}");
        }
        for stored in [&[0][..], &[0, 0, 0], &[0x10, b'a', 2, 0], &[0xf0, 255, 255]] {
            assert!(first_of_lz4(stored, 9).is_none(), "{stored:?}");
        }
    }
}
