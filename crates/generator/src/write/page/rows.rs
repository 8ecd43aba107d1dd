//! The rows of one column for a page.

use std::borrow::Cow;
use std::ops::Range;

use crate::encode::levels::{bit_width, encode};
use crate::random::instruction_sets::widest;
use crate::shred::block::LeafBuffer;
use crate::shred::value_buffer::ValueBuffer;
use crate::spec::dataset::{Field, Leaf};

#[derive(Debug)]
pub(crate) struct PageRows<'a> {
    pub field: &'a Field,
    pub leaf: &'a Leaf,
    pub rows: usize,
    /// One definition level per entry; empty if the column has none.
    pub definition: &'a [u8],
    pub values: Cow<'a, ValueBuffer>,
    /// The repetition levels, if the column has any.
    pub repetition: Option<Cow<'a, Repetition<'a>>>,
}

/// The repetition levels of a list, encoded once for all columns that share them.
#[derive(Clone, Debug)]
pub(crate) struct Repetition<'a> {
    levels: Cow<'a, [u8]>,
    encoded: Vec<u8>,
    histogram: Vec<u64>,
}

impl<'a> Repetition<'a> {
    pub(crate) fn new(levels: Cow<'a, [u8]>, max: u8) -> Self {
        let mut encoded = Vec::new();
        encode(&levels, bit_width(max.into()), &mut encoded);
        let histogram = histogram(&levels, max);
        Repetition { levels, encoded, histogram }
    }
}

impl<'a> PageRows<'a> {
    /// All rows of a leaf buffer.
    pub(crate) fn whole(
        field: &'a Field,
        leaf: &'a Leaf,
        column: &'a LeafBuffer,
        rows: usize,
        repetition: Option<&'a Repetition<'a>>,
    ) -> Self {
        let (values, repetition) = (Cow::Borrowed(&column.values), repetition.map(Cow::Borrowed));
        PageRows { field, leaf, rows, definition: &column.definition, values, repetition }
    }

    /// The number of values and nulls.
    pub(crate) fn entries(&self) -> usize {
        match self.field.levels.definition {
            0 => self.values.len(),
            _ => self.definition.len(),
        }
    }

    pub(crate) fn cut(&self, range: Range<usize>) -> PageRows<'a> {
        // The entries of a row begin at repetition level 0.
        let entries = match &self.repetition {
            None => range.clone(),
            Some(repetition) => {
                let starts = repetition.levels.iter().enumerate().filter(|(_, level)| **level == 0);
                let mut starts = starts.map(|(i, _)| i).skip(range.start);
                let end = repetition.levels.len();
                let start = starts.next().unwrap_or(end);
                start..if range.is_empty() { start } else { starts.nth(range.len() - 1).unwrap_or(end) }
            }
        };
        let max = self.field.levels.definition;
        let (definition, values): (&[u8], _) = if max == 0 {
            (&[], entries.clone())
        } else {
            let there = |levels: &[u8]| levels.iter().filter(|level| **level == max).count();
            let before = there(&self.definition[..entries.start]);
            let definition = &self.definition[entries.clone()];
            (definition, before..before + there(definition))
        };
        let mut cut = ValueBuffer::new(self.leaf);
        cut.extend_from(&self.values, values);
        PageRows {
            field: self.field,
            leaf: self.leaf,
            rows: range.len(),
            definition,
            values: Cow::Owned(cut),
            repetition: self.repetition.as_ref().map(|repetition| {
                let levels = repetition.levels[entries].to_vec();
                Cow::Owned(Repetition::new(Cow::Owned(levels), self.field.levels.repetition))
            }),
        }
    }

    /// Appends the repetition levels; in pages of version 1, after their length.
    pub(crate) fn repetition_block(&self, length: bool, out: &mut Vec<u8>) {
        let Some(repetition) = &self.repetition else { return };
        if length {
            out.extend_from_slice(&(repetition.encoded.len() as u32).to_le_bytes());
        }
        out.extend_from_slice(&repetition.encoded);
    }

    /// Appends the definition levels; in pages of version 1, after their length.
    pub(crate) fn definition_block(&self, length: bool, out: &mut Vec<u8>) {
        let max = self.field.levels.definition;
        if max == 0 {
            return;
        }
        let at = out.len();
        if length {
            out.extend_from_slice(&[0; 4]);
        }
        let start = out.len();
        encode(self.definition, bit_width(max.into()), out);
        if length {
            let bytes = (out.len() - start) as u32;
            out[at..start].copy_from_slice(&bytes.to_le_bytes());
        }
    }

    /// The number of entries for each definition level; empty if the column has none.
    pub(crate) fn definition_histogram(&self) -> Vec<u64> {
        match self.field.levels.definition {
            0 => Vec::new(),
            max => histogram(self.definition, max),
        }
    }

    /// The number of entries for each repetition level; empty if the column has none.
    pub(crate) fn repetition_histogram(&self) -> Vec<u64> {
        self.repetition.as_ref().map_or_else(Vec::new, |repetition| repetition.histogram.clone())
    }
}

widest! {
/// The number of entries for each level from 0 to `max`.
fn histogram(levels: &[u8], max: u8) -> Vec<u64> {
    // One vectorised pass per level, many times faster than a single pass that counts by index.
    let count = |level: u8| {
        let in_piece = |piece: &[u8]| u64::from(piece.iter().map(|l| u8::from(*l == level)).sum::<u8>());
        levels.chunks(255).map(in_piece).sum()
    };
    (0..=max).map(count).collect()
}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_each_level() {
        let levels: Vec<u8> = (0..10_000).map(|i| (i % 7 % 4) as u8).collect();
        let expected: Vec<u64> =
            (0..4).map(|level| levels.iter().filter(|l| **l == level).count() as u64).collect();
        assert_eq!(histogram(&levels, 3), expected);
    }
}
