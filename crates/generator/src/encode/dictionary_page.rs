//! Builds the dictionary of a column chunk: values in, indices out.
//!
//! An open-addressing table holds indices into the dictionary, so each value is stored once. Values get their
//! indices in the order of their first appearance, so the dictionary depends on the rows of the chunk alone.

use xxhash_rust::xxh3::xxh3_64;

use crate::encode::values::{DICTIONARY_BYTES, PhysicalValues};

/// The distinct values of a column chunk so far.
#[derive(Debug, Default)]
pub(crate) struct DictionaryPage {
    /// Value `i` is `data[ends[i - 1]..ends[i]]`.
    ends: Vec<usize>,
    data: Vec<u8>,
    /// Index + 1 of a value, or 0 for a free slot. The length is a power of two, at least twice the values.
    table: Vec<u32>,
    /// The bytes of the lengths before the values: 4 each for byte arrays.
    prefix: usize,
    /// A page uses the dictionary, even if the page has no values.
    pub used: bool,
}

impl DictionaryPage {
    /// Empties it for the next column chunk; it keeps its memory.
    pub(crate) fn clear(&mut self) {
        if !self.used {
            return;
        }
        self.ends.clear();
        self.data.clear();
        self.table.fill(0);
        self.used = false;
    }

    /// The number of values.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn is_too_large(&self) -> bool {
        self.data.len() + self.ends.len() * self.prefix > DICTIONARY_BYTES
    }

    /// Appends the index of each value, and adds new values.
    pub(crate) fn indices(&mut self, values: PhysicalValues<'_>, out: &mut Vec<u32>) {
        self.used = true;
        self.prefix = if matches!(values, PhysicalValues::Bytes { .. }) { 4 } else { 0 };
        out.reserve(values.len());
        values.each(|value| out.push(self.index(value)));
    }

    fn index(&mut self, value: &[u8]) -> u32 {
        if self.table.len() < 2 * (self.ends.len() + 1) {
            self.grow();
        }
        let mask = self.table.len() - 1;
        let mut slot = xxh3_64(value) as usize & mask;
        loop {
            match self.table[slot] {
                0 => break,
                index if self.value(index as usize - 1) == value => return index - 1,
                _ => slot = (slot + 1) & mask,
            }
        }
        self.data.extend_from_slice(value);
        self.ends.push(self.data.len());
        let index = self.ends.len() as u32;
        self.table[slot] = index;
        index - 1
    }

    fn value(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.data[start..self.ends[index]]
    }

    fn grow(&mut self) {
        let slots = (self.table.len() * 2).max(64);
        let mut table = vec![0; slots];
        for index in 0..self.ends.len() {
            let mut slot = xxh3_64(self.value(index)) as usize & (slots - 1);
            while table[slot] != 0 {
                slot = (slot + 1) & (slots - 1);
            }
            table[slot] = index as u32 + 1;
        }
        self.table = table;
    }

    /// Appends the PLAIN-encoded values: the body of the dictionary page.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        for index in 0..self.len() {
            let value = self.value(index);
            if self.prefix > 0 {
                out.extend_from_slice(&(value.len() as u32).to_le_bytes());
            }
            out.extend_from_slice(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn indices_lead_back_to_the_values(values in proptest::collection::vec(-50i64..50, 0..400)) {
            let mut dictionary = DictionaryPage::default();
            for round in 0..2 {
                dictionary.clear();
                let mut indices = Vec::new();
                let (first, second) = values.split_at(values.len() / 2);
                dictionary.indices(PhysicalValues::Int64(first), &mut indices);
                dictionary.indices(PhysicalValues::Int64(second), &mut indices);
                let mut page = Vec::new();
                dictionary.encode(&mut page);
                let entries: Vec<i64> =
                    page.chunks_exact(8).map(|e| i64::from_le_bytes(e.try_into().unwrap())).collect();
                let read: Vec<i64> = indices.iter().map(|i| entries[*i as usize]).collect();
                prop_assert_eq!(&read, &values, "round {}", round);
                let mut distinct = values.clone();
                distinct.sort_unstable();
                distinct.dedup();
                prop_assert_eq!(dictionary.len(), distinct.len());
            }
        }
    }

    #[test]
    fn the_bytes_of_its_page_decide_whether_a_dictionary_is_too_large() {
        let mut dictionary = DictionaryPage::default();
        let values: Vec<i64> = (0..DICTIONARY_BYTES as i64 / 8).collect();
        dictionary.indices(PhysicalValues::Int64(&values), &mut Vec::new());
        assert!(!dictionary.is_too_large());
        dictionary.indices(PhysicalValues::Int64(&[-1]), &mut Vec::new());
        assert!(dictionary.is_too_large());
    }
}
