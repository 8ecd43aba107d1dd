//! Cuts a block that was drawn as a whole down to the requested rows.

use std::ops::Range;

use crate::shred::block::Shredder;

impl Shredder<'_> {
    /// The lengths of each leaf (levels, values) and of each list.
    pub(super) fn marks(&self) -> (Vec<(usize, usize)>, Vec<usize>) {
        let leaves = self.shredded.leaves.iter().map(|l| (l.definition.len(), l.values.len())).collect();
        (leaves, self.shredded.lists.iter().map(Vec::len).collect())
    }

    /// Cuts the block appended after `marks` down to `rows`.
    pub(super) fn retain(&mut self, marks: &(Vec<(usize, usize)>, Vec<usize>), rows: Range<usize>) {
        let cut = |v: &mut Vec<u8>, from: usize, keep: &Range<usize>| {
            v.truncate(from + keep.end);
            v.drain(from..from + keep.start);
        };
        // The entries of a row begin at repetition level 0.
        let entries: Vec<Range<usize>> = (self.shredded.lists.iter().zip(&marks.1))
            .map(|(levels, from)| {
                let starts = levels[*from..].iter().enumerate().filter(|(_, level)| **level == 0);
                let end = levels.len() - from;
                let mut starts = starts.map(|(i, _)| i).chain(std::iter::repeat(end));
                let start = starts.nth(rows.start).unwrap_or(end);
                start..if rows.is_empty() { start } else { starts.nth(rows.len() - 1).unwrap_or(end) }
            })
            .collect();
        let mut leaf_levels = vec![(0, false); self.shredded.leaves.len()];
        self.dataset.each_leaf(&mut |field, leaf| {
            leaf_levels[leaf.index] = (field.levels.definition, leaf.draws_alone());
        });
        let leaves = self.shredded.leaves.iter_mut().zip(leaf_levels).zip(&marks.0).enumerate();
        for (_, ((leaf, (max, drawn_alone)), (levels_from, values_from))) in
            leaves.filter(|(index, _)| self.chosen.draws_leaf(*index))
        {
            let entries = leaf.list.map_or(&rows, |list| &entries[list]);
            let values = if max == 0 {
                entries.clone()
            } else {
                let there = |part: &[u8]| part.iter().filter(|level| **level == max).count();
                let levels = &leaf.definition[*levels_from..];
                let before = there(&levels[..entries.start]);
                before..before + there(&levels[entries.clone()])
            };
            if !drawn_alone {
                leaf.values.retain(*values_from, values);
            }
            if max > 0 {
                cut(&mut leaf.definition, *levels_from, entries);
            }
        }
        for ((levels, from), keep) in self.shredded.lists.iter_mut().zip(&marks.1).zip(&entries) {
            cut(levels, *from, keep);
        }
    }
}
