//! The directory of an index: its partitions, and its sources. It is written last, so an index without one is
//! not whole.

use super::partition::Slot;

/// A partition's part of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub slot: Slot,
    /// Its first entry, counted from the start of the index.
    pub first: u64,
    pub rows: u64,
    /// The bytes of its rows in the source.
    pub bytes: u64,
    /// The hash of its entries.
    pub hash: u64,
}

/// A file of copies, as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CopyFile {
    pub bytes: u64,
    pub hash: u64,
}

/// The content of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listed {
    pub parts: Vec<Part>,
    /// Empty if the index has places alone.
    pub copies: Vec<CopyFile>,
}

const MAGIC: &[u8] = b"sawmill index 3\n";

/// Returns the bytes of the directory.
pub(super) fn encode(identity: &str, listed: &Listed) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    let text = |bytes: &mut Vec<u8>, text: &[u8]| {
        bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(text);
    };
    text(&mut bytes, identity.as_bytes());
    bytes.extend_from_slice(&(listed.copies.len() as u64).to_le_bytes());
    for copies in &listed.copies {
        bytes.extend_from_slice(&copies.bytes.to_le_bytes());
        bytes.extend_from_slice(&copies.hash.to_le_bytes());
    }
    for Part { slot, first, rows, bytes: of_rows, hash } in &listed.parts {
        match slot {
            Slot::All => bytes.push(0),
            Slot::Number(number) => {
                bytes.push(1);
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            Slot::Bytes(value) => {
                bytes.push(2);
                text(&mut bytes, value);
            }
            Slot::Null => bytes.push(3),
        }
        [first, rows, of_rows, hash].iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    }
    let hash = xxhash_rust::xxh3::xxh3_64(&bytes);
    bytes.extend_from_slice(&hash.to_le_bytes());
    bytes
}

/// Returns the parts, if the directory is whole and of this identity.
pub(super) fn decode(bytes: &[u8], identity: &str) -> Option<Listed> {
    let (content, hash) = bytes.split_last_chunk::<8>()?;
    if xxhash_rust::xxh3::xxh3_64(content) != u64::from_le_bytes(*hash) {
        return None;
    }
    let mut rest = content.strip_prefix(MAGIC)?;
    if text(&mut rest)? != identity.as_bytes() {
        return None;
    }
    let mut copies = Vec::new();
    for _ in 0..number(&mut rest)? {
        copies.push(CopyFile { bytes: number(&mut rest)?, hash: number(&mut rest)? });
    }
    let mut parts = Vec::new();
    while let Some((kind, more)) = rest.split_first() {
        rest = more;
        let slot = match kind {
            0 => Slot::All,
            1 => {
                let (number, more) = rest.split_first_chunk::<16>()?;
                rest = more;
                Slot::Number(i128::from_le_bytes(*number))
            }
            2 => Slot::Bytes(text(&mut rest)?.to_vec()),
            3 => Slot::Null,
            _ => return None,
        };
        let mut number = || number(&mut rest);
        parts.push(Part { slot, first: number()?, rows: number()?, bytes: number()?, hash: number()? });
    }
    Some(Listed { parts, copies })
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (number, more) = rest.split_first_chunk::<8>()?;
    *rest = more;
    Some(u64::from_le_bytes(*number))
}

fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, more) = rest.split_first_chunk::<8>()?;
    let (text, more) = more.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    *rest = more;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_read_as_written_and_a_damaged_one_is_none() {
        let part = |slot, first| Part { slot, first, rows: 3, bytes: 4, hash: 5 };
        let parts = [
            part(Slot::All, 0),
            part(Slot::Number(-7), 1),
            part(Slot::Bytes(b"a\0".to_vec()), u64::MAX),
            part(Slot::Null, 9),
        ];
        let copies = vec![CopyFile { bytes: 7, hash: 8 }; 2];
        let listed = Listed { parts: parts.to_vec(), copies };
        let bytes = encode("this", &listed);
        assert_eq!(decode(&bytes, "this").unwrap(), listed);
        assert_eq!(decode(&bytes, "that"), None);
        for at in 0..bytes.len() {
            assert_eq!(decode(&bytes[..at], "this"), None);
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert_eq!(decode(&damaged, "this"), None);
        }
    }
}
