//! Fills one block, field by field.

use std::ops::Range;

use crate::draw::expression::Values;
use crate::draw::misfit::Misfit;
use crate::draw::nulls::Nulls;
use crate::draw::value_spec::ValueSpec;
use crate::draw::value_spec::other_rows::changes::Version;
use crate::draw::value_spec::other_rows::fan_out::FanOut;
use crate::draw::value_spec::other_rows::of_children::OfChildren;
use crate::random::rng::{BLOCK_ROWS, Stream};
use crate::shred::block::Shredded;
use crate::shred::first_misfit::MisfitAt;
use crate::shred::leaf_draws::Draws;
use crate::shred::leaf_draws::children::as_operands;
use crate::shred::levels::{row_of_value, values_of_rows};
use crate::shred::operands::{OperandValues, distinguish, operands};
use crate::shred::value_buffer::ValueBuffer;
use crate::spec::dataset::{Dataset, Field, Kind, Leaf};

/// The buffers of a struct or list while its fields are filled.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) draws: Vec<u32>,
    pub(super) definition: Vec<u8>,
    pub(super) repetition: Vec<u8>,
    pub(super) masks: Vec<u32>,
    pub(super) numbers: Vec<u64>,
    pub(super) operands: Vec<Values>,
    pub(super) ranks: Vec<f64>,
}

/// The entries to fill a field for.
#[derive(Clone, Copy)]
pub(super) struct Entries<'a> {
    /// Their definition levels so far.
    pub(super) definition: &'a [u8],
    /// The definition level of live entries.
    pub(super) live: u8,
    /// Their repetition levels in the innermost list.
    pub(super) repetition: &'a [u8],
    /// The repetition level of that list's elements after the first; 0 outside of lists.
    pub(super) list_level: u8,
    /// The present fields of the enclosing struct, for each entry.
    pub(super) masks: &'a [u32],
}

/// Fills one block.
pub(super) struct Filler<'a> {
    /// The seed of this table, and the seed of the job.
    pub(super) seed: u64,
    pub(super) job_seed: u64,
    pub(super) block: u64,
    pub(super) shredded: &'a mut Shredded,
    pub(super) scratch: &'a mut Vec<Scratch>,
    pub(super) operand_values: &'a mut Vec<OperandValues>,
    pub(super) dataset: &'a Dataset,
    /// The requested rows of the block.
    pub(super) wanted: Range<usize>,
    /// The ranks of each member of the copula, by row.
    pub(super) ranks: &'a [Vec<f64>],
    /// The version of changing leaves, and their ranks.
    pub(super) version: &'a Version,
    pub(super) version_ranks: &'a [Vec<f64>],
    /// How the rows are children of a parent's rows, if a formula needs the row before.
    pub(super) chain: Option<&'a FanOut>,
    pub(super) misfit: &'a mut Option<MisfitAt>,
}

impl Filler<'_> {
    pub(super) fn stream(&self, purpose: u64) -> Stream {
        Stream::new(self.seed, purpose, self.block)
    }

    /// The draws of a leaf's values or nulls.
    pub(super) fn stream_of(&self, leaf: &Leaf, purpose: u64) -> Stream {
        Stream::new(self.version.seed(self.seed, leaf.index), purpose, self.block)
    }

    /// The ranks of the `member` that a leaf follows, by row.
    pub(super) fn ranks_of(&self, leaf: &Leaf, member: usize) -> Option<&[f64]> {
        let all = if self.version.changes(leaf.index) { self.version_ranks } else { self.ranks };
        all.get(member).map(Vec::as_slice)
    }

    pub(super) fn field(&mut self, field: &Field, entries: Entries<'_>, depth: usize) {
        if self.scratch.len() <= depth {
            self.scratch.resize_with(depth + 1, Scratch::default);
        }
        // Taken out of the pool: nested fields use the buffers of the next depth.
        let mut scratch = std::mem::take(&mut self.scratch[depth]);
        match &field.kind {
            Kind::Leaf(leaf) => self.leaf(field, leaf, entries, &mut scratch),
            Kind::Struct { fields, present } => {
                let n = entries.definition.len();
                let there = field.nulls != Nulls::Never;
                if there {
                    scratch.definition.resize(n, 0);
                    self.raise(field, entries, &mut scratch.draws, &mut scratch.definition);
                }
                if let Some(present) = present {
                    self.masks(present, field.value_draws, n, &mut scratch.masks);
                }
                let inner = Entries {
                    definition: if there { &scratch.definition } else { entries.definition },
                    live: field.levels.definition,
                    masks: &scratch.masks,
                    ..entries
                };
                for field in fields {
                    self.field(field, inner, depth + 1);
                }
            }
            Kind::List { number, lengths, children, .. } => {
                self.expand(field, lengths, entries, &mut scratch);
                self.shredded.lists[*number].extend_from_slice(&scratch.repetition);
                let inner = Entries {
                    definition: &scratch.definition,
                    live: field.levels.definition,
                    repetition: &scratch.repetition,
                    list_level: field.levels.repetition,
                    masks: &[],
                };
                for child in children {
                    self.field(child, inner, depth + 1);
                }
            }
        }
        self.scratch[depth] = scratch;
    }

    /// Notes that value `value` of a leaf does not fit. The leaf's entries have the levels `own`; values have the level
    /// `there`.
    pub(super) fn note(
        &mut self,
        value: usize,
        misfit: Misfit,
        (leaf, there): (usize, u8),
        entries: Entries<'_>,
        own: &[u8],
    ) {
        let row = self.block * BLOCK_ROWS + row_of_value(value, entries.repetition, own, there) as u64;
        // In the same row, the first column counts: later columns may depend on it.
        if self.misfit.is_none_or(|before| row < before.row) {
            *self.misfit = Some(MisfitAt { row, leaf, misfit });
        }
    }

    fn leaf(&mut self, field: &Field, leaf: &Leaf, entries: Entries<'_>, scratch: &mut Scratch) {
        let mut definition = std::mem::take(&mut self.shredded.leaves[leaf.index].definition);
        let at = definition.len();
        let mut there = if field.levels.definition == 0 {
            entries.definition.len()
        } else {
            definition.resize(at + entries.definition.len(), 0);
            self.raise(field, entries, &mut scratch.draws, &mut definition[at..])
        };
        scratch.numbers.clear();
        scratch.operands.clear();
        let own = &mut definition[at..];
        let wanted = leaf.values.operands();
        if let ValueSpec::OfChildren(children) = &leaf.values {
            there = self
                .fold_elements(children, own, (entries, field.levels.definition), &mut scratch.operands)
                .unwrap_or(there);
        } else if !wanted.is_empty() {
            let scope = (entries.repetition, field.levels.definition, entries.list_level);
            there = operands(wanted, self.operand_values, scope, own, &mut scratch.operands);
        }
        self.number(field, leaf, entries, own, there, &mut scratch.numbers);
        let wanted = match self.wanted == (0..BLOCK_ROWS as usize) {
            true => 0..there,
            false => values_of_rows(self.wanted.clone(), entries.repetition, own, field.levels.definition),
        };
        // Long values are drawn only for the requested rows.
        let (drawn, wanted) = match leaf.draws_alone() {
            true => (wanted.clone(), 0..wanted.len()),
            false => (0..there, wanted),
        };
        scratch.ranks.clear();
        if let Some(ranks) = leaf.ranked.as_ref().and_then(|ranked| self.ranks_of(leaf, ranked.member)) {
            let is_there = |i: usize| own.get(i).is_none_or(|level| *level == field.levels.definition);
            scratch
                .ranks
                .extend(ranks.iter().enumerate().filter(|(i, _)| is_there(*i)).map(|(_, rank)| rank));
        }
        let draws = Draws {
            stream: self.stream_of(leaf, field.value_draws).skip(drawn.start as u64),
            n: drawn.len(),
            first_id: self.block * BLOCK_ROWS * leaf.most_in_record,
            numbers: &scratch.numbers,
            operands: &scratch.operands,
            wanted,
            seed: self.job_seed,
            ranks: &scratch.ranks,
        };
        let mut values = std::mem::replace(
            &mut self.shredded.leaves[leaf.index].values,
            ValueBuffer::Booleans(Vec::new()),
        );
        let first = values.len();
        let (misfit, nulls) = match (&leaf.values, self.chain) {
            (ValueSpec::OtherColumn(column), _) => column.draw(&draws, &mut values),
            (ValueSpec::OfChildren(children), _) => children.draw(&leaf.kind, &draws, &mut values),
            (chained, Some(fan_out)) if chained.follows_rows() => {
                (leaf.draw_chain(&draws, fan_out, self.operand_values, &mut values), Vec::new())
            }
            _ => (leaf.draw(&draws, &mut values), Vec::new()),
        };
        if let Some((value, misfit)) = misfit {
            self.note(value, misfit, (leaf.index, field.levels.definition), entries, own);
        }
        lower(own, field.levels.definition, &nulls);
        let buffer = &mut self.shredded.leaves[leaf.index];
        buffer.values = values;
        if leaf.distinct {
            let levels = (&*own, entries.repetition);
            let list = (field.levels.definition, entries.list_level);
            distinguish(leaf, &mut buffer.values, first, levels, list);
        }
        let operand = &mut self.operand_values[leaf.index];
        operand.from = (at, first);
        if leaf.is_operand {
            operand.fill(leaf, &buffer.values, own, field.levels.definition);
        }
        buffer.definition = definition;
    }

    /// If values fold the elements of a list: adds them to `out`, and returns how many there are. Entries of level
    /// `there` whose extreme is missing become null.
    fn fold_elements(
        &self,
        children: &OfChildren,
        own: &mut [u8],
        (entries, there): (Entries<'_>, u8),
        out: &mut Vec<Values>,
    ) -> Option<usize> {
        let elements = children.elements()?;
        let [operand] = &elements.operand;
        let (_, leaf) = self.dataset.leaf(operand.leaf)?;
        let from = self.operand_values[operand.leaf].from;
        let n = entries.definition.len();
        let folded = elements.folded(children.fold, (&*self.shredded, leaf), from, n);
        let mut values = Vec::with_capacity(n);
        for (i, folded) in folded.into_iter().enumerate() {
            match (own.get_mut(i), folded) {
                (Some(level), _) if *level != there => {}
                // The spec reader has made this field optional.
                (Some(level), None) => *level -= 1,
                (_, folded) => values.push(folded.unwrap_or(0)),
            }
        }
        out.push(as_operands(&values));
        Some(values.len())
    }

    /// For sequences, monotone values and columns of the parent: appends the number of each of the `there` values,
    /// which have the definition levels `own`.
    fn number(
        &self,
        field: &Field,
        leaf: &Leaf,
        entries: Entries<'_>,
        own: &[u8],
        there: usize,
        numbers: &mut Vec<u64>,
    ) {
        match &leaf.values {
            ValueSpec::Sequence { .. } if entries.list_level > 0 => {
                let mut position = 0;
                let levels = own.iter().zip(entries.repetition);
                numbers.extend(levels.filter_map(|(definition, repetition)| {
                    position = if *repetition == entries.list_level { position + 1 } else { 0 };
                    (*definition == field.levels.definition).then_some(position)
                }));
            }
            values if entries.list_level == 0 && values.counts_rows() => {
                let rows = self.block * BLOCK_ROWS..(self.block + 1) * BLOCK_ROWS;
                if own.is_empty() {
                    numbers.extend(rows);
                } else {
                    let levels = own.iter().zip(rows);
                    let there = levels.filter(|(level, _)| **level == field.levels.definition);
                    numbers.extend(there.map(|(_, row)| row));
                }
            }
            ValueSpec::Monotone(_) => {
                let first = self.block * BLOCK_ROWS * leaf.most_in_record;
                numbers.extend(first..first + there as u64);
            }
            _ => {}
        }
    }
}

/// Lowers the levels of the values whose numbers are `nulls`, in rising order.
fn lower(levels: &mut [u8], there: u8, nulls: &[usize]) {
    if nulls.is_empty() {
        return;
    }
    let mut nulls = nulls.iter().peekable();
    for (value, level) in levels.iter_mut().filter(|level| **level == there).enumerate() {
        if nulls.next_if(|null| **null == value).is_some() {
            *level -= 1;
        }
    }
}
