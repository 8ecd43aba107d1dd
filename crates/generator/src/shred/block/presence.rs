//! Which entries of a field are there: null fields, absent ones, the elements of lists.

use crate::draw::lengths::Lengths;
use crate::draw::nulls::Nulls;
use crate::draw::value_spec::other_rows::changes::Changes;
use crate::random::rng::{BLOCK_ROWS, Sequence};
use crate::shred::block::filler::{Entries, Filler, Scratch};
use crate::shred::first_misfit::FirstMisfit;
use crate::shred::leaf_draws::held;
use crate::shred::levels::{count_live, raise_by_draw, raise_by_mask, values_of_rows};
use crate::shred::operands::operands;
use crate::spec::dataset::{Field, Kind, Present, images};

impl Filler<'_> {
    /// Draws the combination of present fields for `n` entries.
    pub(super) fn masks(&self, present: &Present, draws: u64, n: usize, masks: &mut Vec<u32>) {
        masks.resize(n, 0);
        present.table.fill(self.stream(draws), masks);
        for mask in masks {
            *mask = present.masks[*mask as usize];
        }
    }

    /// For each row of a change stream, which of `before` and `after` it has.
    pub(super) fn images(&self, changes: &Changes, masks: &mut Vec<u32>) {
        let rows: Vec<u64> = (self.block * BLOCK_ROWS..(self.block + 1) * BLOCK_ROWS).collect();
        masks.clear();
        masks.extend(
            changes
                .changes(self.job_seed, &rows)
                .into_iter()
                .map(|change| change.map_or(0, |change| images(change.operation))),
        );
    }

    /// Writes the definition levels of `entries` to `out`, raised by one where the optional `field` is
    /// present. Returns the number of entries in which it is present.
    pub(super) fn raise(
        &mut self,
        field: &Field,
        entries: Entries<'_>,
        draws: &mut Vec<u32>,
        out: &mut [u8],
    ) -> usize {
        match field.nulls {
            Nulls::Never => count_live(entries.definition, entries.live, out),
            Nulls::Share(share) => {
                // 31 bits, so that both 0 and 1 are exact.
                let threshold = (share * 2f64.powi(31)) as u32;
                draws.resize(entries.definition.len(), 0);
                match &field.kind {
                    Kind::Leaf(leaf) => {
                        match leaf.null_member.and_then(|member| self.ranks_of(leaf, member)) {
                            Some(ranks) => ranks.iter().zip(draws.iter_mut()).for_each(|(rank, draw)| {
                                *draw = (rank * 2f64.powi(32)) as u32;
                            }),
                            None => self.stream_of(leaf, field.null_draws).fill32(draws),
                        }
                    }
                    _ => self.stream(field.null_draws).fill32(draws),
                }
                raise_by_draw(entries.definition, entries.live, draws, threshold, out)
            }
            Nulls::Where => self.raise_by_condition(field, entries, out),
            Nulls::Together(bit) => raise_by_mask(entries.definition, entries.live, entries.masks, bit, out),
        }
    }

    /// Raises the live entries for which the condition of `field` does not hold, and counts them.
    fn raise_by_condition(&mut self, field: &Field, entries: Entries<'_>, out: &mut [u8]) -> usize {
        let there = entries.live + 1;
        for (before, after) in entries.definition.iter().zip(out.iter_mut()) {
            *after = before + u8::from(*before == entries.live);
        }
        let Some(condition) = &field.null_where else { return count(out, there) };
        let mut values = Vec::new();
        let scope = (entries.repetition, there, entries.list_level);
        let n = operands(&condition.operands, self.operand_values, scope, out, &mut values);
        let places: Vec<usize> = (0..out.len()).filter(|i| out[*i] == there).collect();
        // A draw depends on the entry alone, not on how many before it are null.
        let stream = match &field.kind {
            Kind::Leaf(leaf) => self.stream_of(leaf, field.null_draws),
            _ => self.stream(field.null_draws),
        };
        let wanted = values_of_rows(self.wanted.clone(), entries.repetition, out, there);
        let mut misfits = FirstMisfit::among(wanted);
        let random = |i: usize| Sequence::new(stream.draw(places.get(i).map_or(0, |place| *place as u64)));
        let nulls = held(condition, &values, n, random, &mut misfits);
        if let Some((value, misfit)) = misfits.found {
            let mut first = None;
            field.each_leaf(&mut |_, leaf| first = first.or(Some(leaf.index)));
            self.note(value, misfit, (first.unwrap_or(0), there), entries, out);
        }
        for (place, _) in places.into_iter().zip(nulls).filter(|(_, is_null)| *is_null) {
            out[place] = entries.live;
        }
        count(out, there)
    }

    /// Replaces the entries with the elements of a list, in the levels of `scratch`.
    pub(super) fn expand(
        &mut self,
        field: &Field,
        lengths: &Lengths,
        entries: Entries<'_>,
        scratch: &mut Scratch,
    ) {
        let n = entries.definition.len();
        let (live, element, own) = (entries.live, field.levels.definition, field.levels.repetition);
        let Scratch { draws, definition, repetition, .. } = scratch;
        // Of the other lists, the lengths say which are null.
        let mut raised = Vec::new();
        if matches!(field.nulls, Nulls::Together(_) | Nulls::Where) {
            raised.resize(n, 0);
            self.raise(field, entries, draws, &mut raised);
        }
        draws.resize(n, 0);
        self.stream(field.value_draws).fill32(draws);
        // The definition level of an empty list.
        let empty = element - 1;
        let most = n * lengths.longest.max(1) as usize + 8;
        definition.resize(most, 0);
        repetition.resize(most, 0);
        let mut at = 0;
        for (i, draw) in draws.iter().enumerate() {
            let before = entries.definition[i];
            let there = raised.get(i).is_none_or(|level| *level > before);
            let length = lengths.lengths[lengths.table.pick(*draw) as usize].filter(|_| there);
            let (level, length) = match length {
                _ if before != live => (before, 1),
                None => (before, 1),
                Some(0) => (empty, 1),
                Some(length) => (element, length as usize),
            };
            // The first entry continues the enclosing lists; the others repeat this list.
            let outer = entries.repetition[i];
            if length <= 8 {
                // Eight at once; the next entry overwrites those after the end.
                let eight = [level; 8];
                definition[at..at + 8].copy_from_slice(&eight);
                let mut eight = [own; 8];
                eight[0] = outer;
                repetition[at..at + 8].copy_from_slice(&eight);
            } else {
                definition[at..at + length].fill(level);
                repetition[at..at + length].fill(own);
                repetition[at] = outer;
            }
            at += length;
        }
        definition.truncate(at);
        repetition.truncate(at);
    }
}

/// How many entries are there.
fn count(levels: &[u8], there: u8) -> usize {
    levels.iter().filter(|level| **level == there).count()
}
