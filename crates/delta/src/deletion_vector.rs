//! Deletion vectors: which rows of a file are deleted, as bitmaps in the log or in a file beside the table's.
//!
//! ```text
//! file:  version ┃ at the offset: length, big-endian ┃ data ┃ CRC-32 of the data, big-endian
//! data:  magic ┃ number of bitmaps ┃ for each: upper 32 bits of its rows ┃ a bitmap in Roaring's portable format
//! older: magic ┃ number of bitmaps ┃ for each, its upper bits being its number: length ┃ a bitmap, all numbers big-endian
//! ```
//!
//! Such a file may be anywhere, in tables that share files with another one.
//!
//! Each length is checked against the bytes that the vector has: memory grows at most in proportion to them.

use std::ops::Range;
use std::path::Path;

use sawmill_store::{Confinement, Location};

use crate::action::DeletionVector;
use crate::table_folder::TableFolder;

/// The first four bytes of the data, little-endian.
const MAGIC: u32 = 1_681_511_377;
/// The same of the older form, big-endian.
const OLDER_MAGIC: u32 = 1_681_511_376;
/// The first field of a bitmap without runs, and the lower half of the first field of one with runs.
const WITHOUT_RUNS: u32 = 12_346;
const WITH_RUNS: u32 = 12_347;
/// With fewer containers than this, a bitmap with runs has no offsets.
const NO_OFFSETS: usize = 4;
/// A container with more values than this is a bitmap of 2^16 bits.
const MAX_ARRAY: usize = 4096;
/// The memory of one range of rows while there are more and more, and they are then copied.
const RANGE: usize = 3 * size_of::<Range<u64>>();

/// Returns the deleted rows of a file, in ascending order, of a vector within the confinement, if they take at most `room`
/// bytes. The error names the fault of the vector.
pub(crate) fn deleted_rows(
    table: &dyn TableFolder,
    vector: &DeletionVector,
    confinement: Option<&Confinement>,
    room: usize,
) -> Result<Vec<Range<u64>>, String> {
    let size = usize::try_from(vector.size_in_bytes).map_err(|_| "it has a negative size".to_owned())?;
    let text = vector.path_or_inline_dv.as_str();
    let ranges = match vector.storage_type.as_str() {
        "i" => {
            let bytes = base85(text).ok_or("its text is not base85")?;
            rows_of(bytes.get(..size).ok_or("it is shorter than its size")?, room)?
        }
        kind @ ("u" | "p") => {
            let place = match kind {
                "p" => Location::new(Path::new(text)).map_err(|error| error.to_string())?,
                _ => {
                    let name = file_name(text).ok_or("its file's name is not a UUID in base85")?;
                    table.location(&name).map_err(|error| error.to_string())?
                }
            };
            confinement.map_or(Ok(()), |within| within.check(&place)).map_err(|error| error.to_string())?;
            let bytes = table.read_at(&place).map_err(|error| error.to_string())?;
            let bytes = bytes.ok_or_else(|| format!("its file {place} does not exist"))?;
            rows_of(in_file(&bytes, vector.offset.unwrap_or(1), size)?, room)?
        }
        other => return Err(format!("sawmill lacks vectors of the storage type {other:?}")),
    };
    let rows: u64 = ranges.iter().map(|rows| rows.end - rows.start).sum();
    match u64::try_from(vector.cardinality) == Ok(rows) {
        true => Ok(ranges),
        false => Err(format!("it has {rows} rows, {} in the table's log", vector.cardinality)),
    }
}

/// Returns the name of the file for a prefix and a UUID in base85.
fn file_name(text: &str) -> Option<String> {
    let (prefix, uuid) = text.split_at_checked(text.len().checked_sub(20)?)?;
    let uuid = base85(uuid)?;
    // It becomes the name of a folder.
    if !prefix.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let hex = |range: Range<usize>| uuid[range].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let uuid = [hex(0..4), hex(4..6), hex(6..8), hex(8..10), hex(10..16)].join("-");
    let folder = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
    Some(format!("{folder}deletion_vector_{uuid}.bin"))
}

/// Returns the data at an offset of a file, if its checksum is right.
fn in_file(bytes: &[u8], offset: i64, size: usize) -> Result<&[u8], String> {
    let mut rest = Bytes(usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).ok_or(CUT)?);
    let length = u32::from_be_bytes(rest.array()?);
    if usize::try_from(length) != Ok(size) {
        return Err(format!("it has {length} bytes in its file, {size} in the table's log"));
    }
    let data = rest.take(size)?;
    match u32::from_be_bytes(rest.array()?) == crc32fast::hash(data) {
        true => Ok(data),
        false => Err("its checksum is wrong".to_owned()),
    }
}

const CUT: &str = "it ends too soon";

/// The bytes that are not read yet.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(CUT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.take(N)?.try_into().map_err(|_| CUT.to_owned())
    }

    fn u16(&mut self) -> Result<u16, String> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.array()?))
    }
}

/// Returns the rows of the data of a vector.
fn rows_of(data: &[u8], room: usize) -> Result<Vec<Range<u64>>, String> {
    let mut bytes = Bytes(data);
    let magic: [u8; 4] = bytes.array()?;
    let mut rows = Rows { ranges: Vec::new(), most: room / RANGE };
    if u32::from_be_bytes(magic) == OLDER_MAGIC {
        for upper in 0..u64::from(u32::from_be_bytes(bytes.array()?)) {
            let _length: [u8; 4] = bytes.array()?;
            bitmap(&mut bytes, upper << 32, &mut rows)?;
        }
        return Ok(rows.ranges);
    }
    if u32::from_le_bytes(magic) != MAGIC {
        return Err("it is not an array of Roaring bitmaps".to_owned());
    }
    let bitmaps = u64::from_le_bytes(bytes.array()?);
    for _ in 0..bitmaps {
        let upper = u64::from(bytes.u32()?) << 32;
        bitmap(&mut bytes, upper, &mut rows)?;
    }
    Ok(rows.ranges)
}

/// Rows in ascending order.
struct Rows {
    ranges: Vec<Range<u64>>,
    most: usize,
}

impl Rows {
    fn add(&mut self, rows: Range<u64>) -> Result<(), String> {
        let is_full = self.ranges.len() >= self.most;
        match self.ranges.last_mut() {
            Some(last) if rows.start < last.end => {
                return Err("its rows are not in ascending order".to_owned());
            }
            Some(last) if rows.start == last.end => last.end = rows.end,
            _ if is_full => {
                return Err(format!("it takes more than {} bytes of memory", self.most * RANGE));
            }
            _ => self.ranges.push(rows),
        }
        Ok(())
    }
}

/// Reads a bitmap of 32-bit numbers (<https://github.com/RoaringBitmap/RoaringFormatSpec>).
fn bitmap(bytes: &mut Bytes<'_>, upper: u64, rows: &mut Rows) -> Result<(), String> {
    if upper >= 1 << 63 {
        return Err("it has rows beyond 2^63".to_owned());
    }
    let cookie = bytes.u32()?;
    let (containers, runs) = match cookie {
        WITHOUT_RUNS => (bytes.u32()? as usize, None),
        cookie if cookie & 0xffff == WITH_RUNS => {
            let containers = (cookie >> 16) as usize + 1;
            (containers, Some(bytes.take(containers.div_ceil(8))?))
        }
        other => return Err(format!("it has a bitmap of the unknown form {other}")),
    };
    if containers > 1 << 16 {
        return Err(format!("it has a bitmap of {containers} containers"));
    }
    let mut headers = Bytes(bytes.take(containers * 4)?);
    if runs.is_none() || containers >= NO_OFFSETS {
        // The containers follow one another.
        bytes.take(containers * 4)?;
    }
    for container in 0..containers {
        let start = upper + (u64::from(headers.u16()?) << 16);
        let values = usize::from(headers.u16()?) + 1;
        let has_runs = runs.is_some_and(|runs| runs[container / 8] >> (container % 8) & 1 == 1);
        if has_runs {
            for _ in 0..bytes.u16()? {
                let first = start + u64::from(bytes.u16()?);
                rows.add(first..first + u64::from(bytes.u16()?) + 1)?;
            }
        } else if values <= MAX_ARRAY {
            for _ in 0..values {
                let row = start + u64::from(bytes.u16()?);
                rows.add(row..row + 1)?;
            }
        } else {
            for (word, bits) in (0u64..).zip(bytes.take(8192)?.chunks_exact(8)) {
                let mut bits = u64::from_le_bytes(bits.try_into().map_err(|_| CUT)?);
                while bits != 0 {
                    let first = bits.trailing_zeros();
                    let count = (bits >> first).trailing_ones();
                    let row = start + word * 64 + u64::from(first);
                    rows.add(row..row + u64::from(count))?;
                    bits = if first + count == 64 { 0 } else { bits >> (first + count) << (first + count) };
                }
            }
        }
    }
    Ok(())
}

/// Decodes ZeroMQ's base85 (<https://rfc.zeromq.org/spec/32/>).
fn base85(text: &str) -> Option<Vec<u8>> {
    const DIGITS: &[u8; 85] =
        b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    if !text.len().is_multiple_of(5) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 5 * 4);
    for five in text.as_bytes().chunks_exact(5) {
        let mut value: u64 = 0;
        for digit in five {
            value = value * 85 + DIGITS.iter().position(|known| known == digit)? as u64;
        }
        bytes.extend(u32::try_from(value).ok()?.to_be_bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table_folder::LocalTable;

    fn inline(bytes: &[u8], cardinality: i64) -> Result<Vec<Range<u64>>, String> {
        const DIGITS: &[u8; 85] =
            b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(4), 0);
        let text = padded.chunks_exact(4).flat_map(|four| {
            let value = u32::from_be_bytes(four.try_into().unwrap());
            [4, 3, 2, 1, 0].map(|power| char::from(DIGITS[(value / 85_u32.pow(power) % 85) as usize]))
        });
        let vector = DeletionVector {
            storage_type: "i".to_owned(),
            path_or_inline_dv: text.collect(),
            offset: None,
            size_in_bytes: bytes.len() as i64,
            cardinality,
        };
        deleted_rows(&LocalTable::new("."), &vector, None, 1 << 20)
    }

    fn array(bitmaps: &[(u32, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = [&MAGIC.to_le_bytes()[..], &(bitmaps.len() as u64).to_le_bytes()].concat();
        for (upper, bitmap) in bitmaps {
            bytes.extend(upper.to_le_bytes());
            bytes.extend(bitmap);
        }
        bytes
    }

    #[test]
    fn the_examples_of_the_protocol_have_their_rows() {
        // An inline vector of Delta's own description of its protocol, and the same rows as writers write them today.
        for (text, size_in_bytes) in [
            ("wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 40),
            ("^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 44),
        ] {
            let vector = DeletionVector {
                storage_type: "i".to_owned(),
                path_or_inline_dv: text.to_owned(),
                offset: None,
                size_in_bytes,
                cardinality: 6,
            };
            let rows = deleted_rows(&LocalTable::new("."), &vector, None, 1 << 20).unwrap();
            assert_eq!(rows, [3..5, 7..8, 11..12, 18..19, 29..30]);
        }
        assert_eq!(
            file_name("ab^-aqEH.-t@S}K{vb[*k^").unwrap(),
            "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
        );
        assert_eq!(file_name("../^-aqEH.-t@S}K{vb[*k^"), None);
    }

    #[test]
    fn a_vector_with_an_absolute_path_is_read_within_the_confinement_alone() {
        let (table, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let bitmap =
            [&WITHOUT_RUNS.to_le_bytes()[..], &[1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 7, 0, 9, 0]].concat();
        let data = array(&[(0, bitmap)]);
        let (size, sum) = (data.len() as u32, crc32fast::hash(&data));
        let path = other.path().join("a b.bin");
        let parts = [&[1][..], &size.to_be_bytes(), &data, &sum.to_be_bytes()];
        std::fs::write(&path, parts.concat()).unwrap();
        let read = |text: &str, folder: Option<&Path>| {
            let vector = DeletionVector {
                storage_type: "p".to_owned(),
                path_or_inline_dv: text.to_owned(),
                offset: Some(1),
                size_in_bytes: size.into(),
                cardinality: 2,
            };
            let confinement = folder.map(|folder| Confinement::to(folder).unwrap());
            deleted_rows(&LocalTable::new(table.path()), &vector, confinement.as_ref(), 1 << 20)
        };
        let url = format!("file://{}", path.display().to_string().replace(' ', "%20"));
        for text in [path.to_str().unwrap(), &url] {
            assert_eq!(read(text, None).unwrap(), [7..8, 9..10]);
            assert_eq!(read(text, Some(other.path())).unwrap(), [7..8, 9..10]);
            assert!(read(text, Some(table.path())).unwrap_err().contains("outside of"));
        }
        assert!(read("s3://bucket/a.bin", None).unwrap_err().contains("another store"));
        assert!(read("/none.bin", None).unwrap_err().contains("does not exist"));
    }

    #[test]
    fn each_kind_of_container_is_read() {
        let mut bits = vec![0; 8192];
        bits[..626].fill(0xff);
        bits[8191] = 0x80;
        let whole = [
            &WITHOUT_RUNS.to_le_bytes()[..],
            &2_u32.to_le_bytes(),
            &[0, 0, 1, 0],
            &[5, 0],
            &5008_u16.to_le_bytes(),
            &[0; 8],
            &[1, 0, 9, 0],
            &bits,
        ]
        .concat();
        let runs = [&(WITH_RUNS).to_le_bytes()[..], &[1, 2, 0, 9, 0, 1, 0, 7, 0, 9, 0]].concat();
        let rows = inline(&array(&[(0, whole), (1, runs)]), 2 + 5009 + 10).unwrap();
        let (five, two, upper) = (5 << 16, 2 << 16, 1 << 32);
        assert_eq!(
            rows,
            [1..2, 9..10, five..five + 5008, five + 65_535..five + 65_536, upper + two + 7..upper + two + 17]
        );
    }

    #[test]
    fn damaged_vectors_are_refused() {
        let good = array(&[(
            0,
            [&WITHOUT_RUNS.to_le_bytes()[..], &[1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 4, 0, 7, 0]].concat(),
        )]);
        assert_eq!(inline(&good, 2).unwrap(), [4..5, 7..8]);
        assert!(inline(&good, 3).unwrap_err().contains("2 rows"));
        for length in 0..good.len() {
            assert!(inline(&good[..length], 2).is_err(), "{length}");
        }
        let mut descending = good.clone();
        let last = descending.len() - 2;
        descending[last] = 3;
        assert!(inline(&descending, 2).unwrap_err().contains("ascending"));
        assert!(inline(&array(&[(0, vec![1, 0, 0, 0])]), 1).unwrap_err().contains("unknown form"));
        let one =
            [&WITHOUT_RUNS.to_le_bytes()[..], &[1, 0, 0, 0, 255, 255, 0, 0, 16, 0, 0, 0, 255, 255]].concat();
        assert!(inline(&array(&[(u32::MAX, one)]), 1).unwrap_err().contains("beyond"));
        assert!(in_file(b"\x01\0\0\0\x01a\0\0\0\0", 1, 1).unwrap_err().contains("checksum"));
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
    }
}
