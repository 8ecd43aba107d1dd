//! Entries of the index: the time of a row, and where it is.

use super::addressed::RowAddress;

/// The bytes of an entry on disk.
pub(super) const ENTRY_BYTES: usize = 24;

/// The bytes of a copy's place on disk.
pub(super) const COPY_BYTES: usize = 12;

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

    /// Reads all entries of `bytes`.
    pub(super) fn all(bytes: &[u8]) -> impl Iterator<Item = Self> + '_ {
        bytes.as_chunks::<ENTRY_BYTES>().0.iter().map(Self::read)
    }
}

/// Appends the place of a copy: the number of its file, and where it starts there.
pub(super) fn write_copy(file: u32, at: u64, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&file.to_le_bytes());
    bytes.extend_from_slice(&at.to_le_bytes());
}

/// Reads the places of copies, as [`write_copy`] writes them.
pub(super) fn copies(bytes: &[u8]) -> impl Iterator<Item = (u32, u64)> + '_ {
    bytes
        .as_chunks::<COPY_BYTES>()
        .0
        .iter()
        .map(|[a, b, c, d, at @ ..]| (u32::from_le_bytes([*a, *b, *c, *d]), u64::from_le_bytes(*at)))
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
        let mut bytes = Vec::new();
        sorted.iter().for_each(|entry| entry.write(&mut bytes));
        assert_eq!(Entry::all(&bytes).collect::<Vec<_>>(), sorted);
        assert_eq!(sorted[5].address(), address(u64::MAX));
    }
}
