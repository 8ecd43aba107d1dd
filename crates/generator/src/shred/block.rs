//! Draws records as columns: definition levels, repetition levels and values, without making records.
//!
//! Rows are drawn in blocks of [`BLOCK_ROWS`]. A block depends on the dataset, the seed and its number alone.
//! The shredder visits each field of the tree once per block, and a field handles all entries of the block in
//! one pass:
//!
//! - the *entries* of a field are those that its leaf columns have a level for: the rows themselves, or the
//!   elements of the enclosing list; a null or empty list is one entry;
//! - an entry is *live* if all enclosing fields are present, as its definition level shows;
//! - a field raises the definition level of the live entries in which it is present, a list replaces its
//!   entries with its elements, and a leaf draws one value for each entry in which it is present.

use std::ops::Range;

use crate::draw::expression::Values;
use crate::draw::lengths::Lengths;
use crate::draw::misfit::Misfit;
use crate::draw::nulls::Nulls;
use crate::draw::value_spec::ValueSpec;
use crate::draw::value_spec::changes::{Changes, Version};
use crate::draw::value_spec::fan_out::FanOut;
use crate::error::Error;
use crate::random::rng::{BLOCK_ROWS, Sequence, Stream, purpose};
use crate::shred::chosen_fields::ChosenFields;
use crate::shred::first_misfit::{FirstMisfit, MisfitAt};
use crate::shred::leaf_draws::{Draws, held};
use crate::shred::levels::{count_live, raise_by_draw, raise_by_mask, row_of_value, values_of_rows};
use crate::shred::operands::{OperandValues, distinguish, operands};
use crate::shred::row_maker::RowCursor;
use crate::shred::value_buffer::{MAX_STRING_BYTES, ValueBuffer};
use crate::spec::dataset::{Dataset, Field, Kind, Leaf, Present, images};

/// One leaf column of the drawn rows.
#[derive(Debug)]
pub(crate) struct LeafBuffer {
    /// One definition level per entry; empty if all fields of the path are required.
    pub definition: Vec<u8>,
    pub values: ValueBuffer,
    /// The innermost enclosing list: an index into [`Shredded::lists`].
    pub list: Option<usize>,
}

/// The drawn rows as columns.
#[derive(Debug)]
pub(crate) struct Shredded {
    pub rows: usize,
    pub leaves: Vec<LeafBuffer>,
    /// The repetition levels of the entries of each list. All leaves whose innermost list it is share them.
    pub lists: Vec<Vec<u8>>,
}

impl Shredded {
    /// The memory that the rows take, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let leaves = self.leaves.iter().map(|leaf| leaf.definition.len() + leaf.values.bytes());
        leaves.chain(self.lists.iter().map(Vec::len)).sum()
    }

    /// The most bytes of strings in one column.
    fn most_string_bytes(&self) -> usize {
        self.leaves.iter().map(|leaf| leaf.values.string_bytes()).max().unwrap_or(0)
    }
}

/// Draws rows of a dataset. Calls reuse its buffers.
#[derive(Debug)]
pub(crate) struct Shredder<'a> {
    dataset: &'a Dataset,
    /// The seed of the job.
    seed: u64,
    chosen: ChosenFields,
    shredded: Shredded,
    /// Buffers for the fields on the path from the root to the current field, one for each depth.
    scratch: Vec<Scratch>,
    /// The values of this block that later expressions use, by leaf.
    operand_values: Vec<OperandValues>,
    /// The ranks of each member of the copula in this block.
    ranks: Vec<Vec<f64>>,
    /// The update of the rows that the changing leaves show, and the ranks that they follow.
    version: Version,
    version_ranks: Vec<Vec<f64>>,
    /// The children that the rows are, if a chosen formula needs the row before; then the last block drawn.
    chain: Option<&'a FanOut>,
    last_block: Option<u64>,
    root: Scratch,
    /// The first value that its column cannot hold, among the requested rows.
    misfit: Option<MisfitAt>,
    /// Computes the rows, if the fields do not draw them.
    cursor: Option<Box<dyn RowCursor + 'a>>,
}

/// The buffers of a struct or list while its fields are filled.
#[derive(Debug, Default)]
struct Scratch {
    draws: Vec<u32>,
    definition: Vec<u8>,
    repetition: Vec<u8>,
    masks: Vec<u32>,
    numbers: Vec<u64>,
    operands: Vec<Values>,
    ranks: Vec<f64>,
}

/// The entries to fill a field for.
#[derive(Clone, Copy)]
struct Entries<'a> {
    /// Their definition levels so far.
    definition: &'a [u8],
    /// The definition level of live entries.
    live: u8,
    /// Their repetition levels in the innermost list.
    repetition: &'a [u8],
    /// The repetition level of that list's elements after the first; 0 outside of lists.
    list_level: u8,
    /// The present fields of the enclosing struct, for each entry.
    masks: &'a [u32],
}

impl<'a> Shredder<'a> {
    pub(crate) fn new(dataset: &'a Dataset, seed: u64) -> Self {
        Self::of_fields(dataset, seed, ChosenFields::all(dataset))
    }

    /// A shredder that leaves the buffers of fields empty that are not `chosen`.
    pub(crate) fn of_fields(dataset: &'a Dataset, seed: u64, chosen: ChosenFields) -> Self {
        let mut leaves: Vec<LeafBuffer> = Vec::with_capacity(dataset.columns());
        let mut lists = 0;
        prepare(&dataset.fields, None, &mut lists, &mut leaves);
        prepare(&dataset.hidden, None, &mut lists, &mut leaves);
        let operand_values = std::iter::repeat_with(OperandValues::default).take(leaves.len()).collect();
        let mut is_chain = false;
        dataset.each_leaf(&mut |_, leaf| {
            is_chain |= leaf.values.follows_rows() && chosen.draws_leaf(leaf.index);
        });
        Shredder {
            dataset,
            seed,
            chosen,
            shredded: Shredded { rows: 0, leaves, lists: vec![Vec::new(); lists] },
            scratch: Vec::new(),
            operand_values,
            ranks: Vec::new(),
            version: Version::default(),
            version_ranks: Vec::new(),
            chain: dataset.chain.as_deref().filter(|_| is_chain),
            last_block: None,
            root: Scratch::default(),
            misfit: None,
            cursor: dataset.maker.as_ref().map(|maker| maker.cursor()),
        }
    }

    /// Draws the rows as they are in a version.
    pub(crate) fn in_version(self, version: Version) -> Self {
        Shredder { version, ..self }
    }

    /// Draws `rows`, numbered over the whole dataset.
    ///
    /// # Errors
    /// As [`rows_up_to`](Self::rows_up_to).
    #[cfg(feature = "arrow")]
    pub(crate) fn rows(&mut self, rows: Range<u64>) -> Result<&Shredded, Error> {
        self.rows_up_to(rows, usize::MAX)
    }

    /// Draws the first of `rows`, up to the end of the block with which they take `bytes` in memory. The
    /// number of rows depends on the rows alone, not on earlier calls.
    ///
    /// # Errors
    /// A row has a value that its column cannot hold: the error names the first such row and its first such
    /// column. Or the values of one column take more than 4 GiB.
    pub(crate) fn rows_up_to(&mut self, rows: Range<u64>, bytes: usize) -> Result<&Shredded, Error> {
        let first = rows.start;
        let misfit = self.draw(rows, bytes);
        self.check_strings(first)?;
        match misfit {
            None => Ok(&self.shredded),
            Some(misfit) => match self.dataset.leaf(misfit.leaf) {
                Some((field, leaf)) => Err(misfit.error(field, leaf)),
                None => Ok(&self.shredded),
            },
        }
    }

    /// Draws `rows` as a sample. A value that its column cannot hold is replaced by another, and the first
    /// one is returned.
    pub(crate) fn sample(&mut self, rows: Range<u64>) -> (&Shredded, Option<MisfitAt>) {
        let misfit = self.draw(rows, usize::MAX);
        (&self.shredded, misfit)
    }

    fn draw(&mut self, rows: Range<u64>, bytes: usize) -> Option<MisfitAt> {
        for leaf in &mut self.shredded.leaves {
            leaf.definition.clear();
            leaf.values.clear();
        }
        for list in &mut self.shredded.lists {
            list.clear();
        }
        self.misfit = None;
        let mut at = rows.start;
        while at < rows.end {
            let end = rows.end.min((at / BLOCK_ROWS + 1) * BLOCK_ROWS);
            match &mut self.cursor {
                Some(cursor) => cursor.append(at..end, &mut self.shredded.leaves),
                None => self.draw_in_block(at..end),
            }
            at = end;
            if self.shredded.bytes() >= bytes || self.shredded.most_string_bytes() > MAX_STRING_BYTES {
                break;
            }
        }
        self.shredded.rows = (at - rows.start) as usize;
        self.misfit
    }

    /// Draws `rows`, all of one block.
    fn draw_in_block(&mut self, rows: Range<u64>) {
        let block = rows.start / BLOCK_ROWS;
        let first = block * BLOCK_ROWS;
        let wanted = (rows.start - first) as usize..(rows.end - first) as usize;
        if let Some(fan_out) = self.chain {
            self.draw_siblings(fan_out, block);
        }
        let marks = (wanted != (0..BLOCK_ROWS as usize)).then(|| self.marks());
        self.block(block, wanted.clone());
        if let Some(marks) = marks {
            self.retain(&marks, wanted);
        }
    }

    /// Draws the blocks with the rows of the same parent before the first row of `block`, on which it depends. A
    /// parent has at most 4,096 children, so that these are few.
    fn draw_siblings(&mut self, fan_out: &FanOut, block: u64) {
        let first = block * BLOCK_ROWS;
        let before = self.last_block.replace(block).map(|last| last + 1);
        let child = fan_out.children(self.seed, &[first]).into_iter().flatten().next();
        let Some(child) = child.filter(|child| child.number > 0 && before != Some(block)) else { return };
        for earlier in (first - child.number) / BLOCK_ROWS..block {
            let marks = self.marks();
            self.block(earlier, 0..0);
            self.retain(&marks, 0..0);
        }
    }

    /// Refuses more string bytes than a buffer can count.
    fn check_strings(&self, first: u64) -> Result<(), Error> {
        if self.shredded.most_string_bytes() <= MAX_STRING_BYTES {
            return Ok(());
        }
        let last = first + self.shredded.rows.saturating_sub(1) as u64;
        let mut place = String::new();
        self.dataset.each_leaf(&mut |field, leaf| {
            if self.shredded.leaves[leaf.index].values.string_bytes() > MAX_STRING_BYTES {
                place = format!("column {}, rows {first} to {last}", field.path);
            }
        });
        Err(Error::spec(
            "one page of values takes more than 4 GiB",
            place,
            "use a smaller --page-rows, or shorten the values in the spec",
        ))
    }

    /// Appends one whole block. Its rows `wanted` were requested. Leaves that draw each value alone
    /// append only the values of these rows, because a whole block of long values takes too much memory.
    fn block(&mut self, block: u64, wanted: Range<usize>) {
        let rows = [0u8; BLOCK_ROWS as usize];
        if let Some(copula) = &self.dataset.copula {
            let numbers: Vec<u64> = (block * BLOCK_ROWS..(block + 1) * BLOCK_ROWS).collect();
            let seed = self.dataset.seeded(self.seed);
            self.ranks = copula.ranks(&numbers, seed);
            if self.version.number > 0 {
                self.version_ranks = copula.drawn(&numbers, &|leaf| self.version.seed(seed, leaf));
            }
        }
        let mut filler = Filler {
            seed: self.dataset.seeded(self.seed),
            job_seed: self.seed,
            block,
            shredded: &mut self.shredded,
            scratch: &mut self.scratch,
            operand_values: &mut self.operand_values,
            wanted,
            ranks: &self.ranks,
            version: &self.version,
            version_ranks: &self.version_ranks,
            chain: self.chain,
            misfit: &mut self.misfit,
        };
        let masks = &mut self.root.masks;
        match (&self.dataset.changes, &self.dataset.present) {
            (Some(changes), _) => filler.images(changes, masks),
            (None, Some(present)) => match &self.dataset.present_ranked {
                Some(ranked) => {
                    let ranks = filler.ranks.get(ranked.member).map_or(&[][..], Vec::as_slice);
                    masks.clear();
                    masks.extend(ranks.iter().map(|rank| ranked.number(*rank)));
                }
                None => filler.masks(present, purpose("", "value"), rows.len(), masks),
            },
            (None, None) => {}
        }
        let entries = Entries { definition: &rows, live: 0, repetition: &rows, list_level: 0, masks };
        for (_, field) in self.dataset.drawn_fields().filter(|(place, _)| self.chosen.draws(*place)) {
            filler.field(field, entries, 0);
        }
    }

    /// The lengths of each leaf (levels, values) and of each list.
    fn marks(&self) -> (Vec<(usize, usize)>, Vec<usize>) {
        let leaves = self.shredded.leaves.iter().map(|l| (l.definition.len(), l.values.len())).collect();
        (leaves, self.shredded.lists.iter().map(Vec::len).collect())
    }

    /// Cuts the block appended after `marks` down to `rows`.
    fn retain(&mut self, marks: &(Vec<(usize, usize)>, Vec<usize>), rows: Range<usize>) {
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

/// Makes the buffers of all leaves, and counts the lists.
fn prepare(fields: &[Field], list: Option<usize>, lists: &mut usize, leaves: &mut Vec<LeafBuffer>) {
    for field in fields {
        match &field.kind {
            Kind::Leaf(leaf) => {
                leaves.push(LeafBuffer { definition: Vec::new(), values: ValueBuffer::new(leaf), list })
            }
            Kind::Struct { fields, .. } => prepare(fields, list, lists, leaves),
            Kind::List { number, children, .. } => {
                *lists += 1;
                prepare(children, Some(*number), lists, leaves);
            }
        }
    }
}

/// Fills one block.
struct Filler<'a> {
    /// The seed of this table, and the seed of the job.
    seed: u64,
    job_seed: u64,
    block: u64,
    shredded: &'a mut Shredded,
    scratch: &'a mut Vec<Scratch>,
    operand_values: &'a mut Vec<OperandValues>,
    /// The requested rows of the block.
    wanted: Range<usize>,
    /// The ranks of each member of the copula, by row.
    ranks: &'a [Vec<f64>],
    /// The version of changing leaves, and their ranks.
    version: &'a Version,
    version_ranks: &'a [Vec<f64>],
    /// The children that the rows are, if a formula needs the row before.
    chain: Option<&'a FanOut>,
    misfit: &'a mut Option<MisfitAt>,
}

impl Filler<'_> {
    fn stream(&self, purpose: u64) -> Stream {
        Stream::new(self.seed, purpose, self.block)
    }

    /// The draws of a leaf's values or nulls.
    fn stream_of(&self, leaf: &Leaf, purpose: u64) -> Stream {
        Stream::new(self.version.seed(self.seed, leaf.index), purpose, self.block)
    }

    /// The ranks of the `member` that a leaf follows, by row.
    fn ranks_of(&self, leaf: &Leaf, member: usize) -> Option<&[f64]> {
        let all = if self.version.changes(leaf.index) { self.version_ranks } else { self.ranks };
        all.get(member).map(Vec::as_slice)
    }

    /// Draws the combination of present fields for `n` entries.
    fn masks(&self, present: &Present, draws: u64, n: usize, masks: &mut Vec<u32>) {
        masks.resize(n, 0);
        present.table.fill(self.stream(draws), masks);
        for mask in masks {
            *mask = present.masks[*mask as usize];
        }
    }

    /// For each row of a change stream, which of `before` and `after` it has.
    fn images(&self, changes: &Changes, masks: &mut Vec<u32>) {
        let rows: Vec<u64> = (self.block * BLOCK_ROWS..(self.block + 1) * BLOCK_ROWS).collect();
        masks.clear();
        masks.extend(
            changes
                .changes(self.job_seed, &rows)
                .into_iter()
                .map(|change| change.map_or(0, |change| images(change.operation))),
        );
    }

    fn field(&mut self, field: &Field, entries: Entries<'_>, depth: usize) {
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

    /// Writes the definition levels of `entries` to `out`, raised by one where the optional `field` is
    /// present. Returns the number of entries in which it is present.
    fn raise(&mut self, field: &Field, entries: Entries<'_>, draws: &mut Vec<u32>, out: &mut [u8]) -> usize {
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

    /// Notes that value `value` of a leaf does not fit, whose entries have the levels `own`, `there` if they are values.
    fn note(
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
        if !wanted.is_empty() {
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
        if leaf.is_operand {
            let level = field.levels.definition;
            self.operand_values[leaf.index].fill(leaf, &buffer.values, first, own, level);
        }
        buffer.definition = definition;
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

    /// Replaces the entries with the elements of a list, in the levels of `scratch`.
    fn expand(&mut self, field: &Field, lengths: &Lengths, entries: Entries<'_>, scratch: &mut Scratch) {
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
