//! Decompresses the bodies of pages whose values are checked (feature `page-checksums`), as the `parquet` crate does.

use std::borrow::Cow;
use std::io::{self, Read};

use crate::schema::enums::Codec;

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
        Codec::Lz4 => hadoop_lz4(stored, claimed)
            .or_else(|| whole(lz4_flex::frame::FrameDecoder::new(stored), claimed))
            .or_else(|| lz4_flex::block::decompress(stored, claimed).ok()),
        _ => None,
    };
    all.filter(|all| all.len() == claimed).map(Cow::Owned)
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

fn hadoop_lz4(mut stored: &[u8], claimed: usize) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    while !stored.is_empty() {
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
