//! Entries of the index: the time of a row, and where it is.

use super::addressed::RowAddress;

/// The bytes of an entry on disk.
pub(super) const ENTRY_BYTES: usize = 24;

/// The bytes of a copy's place, behind the entry of its row.
pub(super) const COPY_BYTES: usize = 12;

/// The bytes of a row of the index.
pub(super) fn row_bytes(has_copies: bool) -> usize {
    ENTRY_BYTES + if has_copies { COPY_BYTES } else { 0 }
}

/// Marks the entry of a row without a time.
const NULL: u32 = 1 << 31;

/// The most files: one bit of their number marks entries without a time.
pub(super) const MAX_FILES: usize = NULL as usize;

/// An entry. Entries compare by time, then by their place in the input; those without a time come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    key: i64,
    file: u32,
    at: u64,
    len: u32,
}

impl Entry {
    /// The entry of a row; `None` is a row without a time.
    pub(super) fn new(key: Option<i64>, address: RowAddress) -> Self {
        let RowAddress { file, at, len } = address;
        match key {
            Some(key) => Self { key, file, at, len },
            None => Self { key: i64::MAX, file: file | NULL, at, len },
        }
    }

    pub(super) fn address(&self) -> RowAddress {
        RowAddress { file: self.file & !NULL, at: self.at, len: self.len }
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.key.to_le_bytes());
        bytes.extend_from_slice(&self.at.to_le_bytes());
        bytes.extend_from_slice(&self.file.to_le_bytes());
        bytes.extend_from_slice(&self.len.to_le_bytes());
    }

    pub(super) fn read(bytes: &[u8; ENTRY_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, rest @ ..] = *bytes;
        let key = i64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let [a, b, c, d, e, f, g, h, rest @ ..] = rest;
        let at = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let [a, b, c, d, e, f, g, h] = rest;
        Self { key, file: u32::from_le_bytes([a, b, c, d]), at, len: u32::from_le_bytes([e, f, g, h]) }
    }

    /// The entry's order after its partition's, for sorts that compare without branches.
    pub(super) fn rank(&self, partition: u32) -> (u128, u64) {
        // With the sign bit changed, times compare like numbers without a sign.
        let key = self.key.cast_unsigned() ^ (1 << 63);
        (u128::from(partition) << 96 | u128::from(key) << 32 | u128::from(self.file), self.at)
    }

    /// The bytes of the row.
    pub(super) fn len(&self) -> u64 {
        self.len.into()
    }

    /// Reads a row of the index: where the row is, and where its copy is, if it has one.
    pub(super) fn read_row(bytes: &[u8]) -> Option<(RowAddress, Option<RowAddress>)> {
        let (entry, copy) = bytes.split_first_chunk()?;
        let address = Self::read(entry).address();
        let copy = copy.first_chunk().map(|[a, b, c, d, at @ ..]: &[u8; COPY_BYTES]| RowAddress {
            file: u32::from_le_bytes([*a, *b, *c, *d]),
            at: u64::from_le_bytes(*at),
            len: address.len,
        });
        Some((address, copy))
    }
}

/// Appends the place of a copy: the number of its file, and where it starts there.
pub(super) fn write_copy((file, at): (u32, u64), bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&file.to_le_bytes());
    bytes.extend_from_slice(&at.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_written_and_those_without_a_time_come_last() {
        let address = |at| RowAddress { file: 7, at, len: 3 };
        let sorted = [
            Entry::new(Some(i64::MIN), address(9)),
            Entry::new(Some(5), address(1)),
            Entry::new(Some(5), address(2)),
            Entry::new(Some(i64::MAX), address(0)),
            Entry::new(None, address(0)),
            Entry::new(None, address(u64::MAX)),
        ];
        assert!(sorted.is_sorted());
        assert!(sorted.is_sorted_by_key(|entry| entry.rank(7)));
        assert!(sorted[5].rank(1) < sorted[0].rank(2));
        for entry in sorted {
            let mut bytes = Vec::new();
            entry.write(&mut bytes);
            assert_eq!(Entry::read(bytes.first_chunk().unwrap()), entry);
            assert_eq!(Entry::read_row(&bytes), Some((entry.address(), None)));
            write_copy((5, 6), &mut bytes);
            let copy = RowAddress { file: 5, at: 6, len: 3 };
            assert_eq!(Entry::read_row(&bytes), Some((entry.address(), Some(copy))));
        }
        assert_eq!(sorted[5].address(), address(u64::MAX));
    }
}
