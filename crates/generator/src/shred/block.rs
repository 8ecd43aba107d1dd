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

mod filler;
mod part;
mod presence;

use std::ops::Range;

use crate::draw::value_spec::other_rows::changes::Version;
use crate::draw::value_spec::other_rows::fan_out::FanOut;
use crate::error::{Error, Result};
use crate::random::rng::{BLOCK_ROWS, purpose};
use crate::shred::block::filler::{Entries, Filler, Scratch};
use crate::shred::chosen_fields::ChosenFields;
use crate::shred::first_misfit::MisfitAt;
use crate::shred::operands::OperandValues;
use crate::shred::row_maker::RowCursor;
use crate::shred::value_buffer::{MAX_STRING_BYTES, ValueBuffer};
use crate::spec::dataset::{Dataset, Field, Kind};

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
    pub(crate) fn rows(&mut self, rows: Range<u64>) -> Result<&Shredded> {
        self.rows_up_to(rows, usize::MAX)
    }

    /// Draws the first of `rows`, up to the end of the block with which they take `bytes` in memory. The
    /// number of rows depends on the rows alone, not on earlier calls.
    ///
    /// # Errors
    /// A row has a value that its column cannot hold: the error names the first such row and its first such
    /// column. Or the values of one column take more than 4 GiB.
    pub(crate) fn rows_up_to(&mut self, rows: Range<u64>, bytes: usize) -> Result<&Shredded> {
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
    fn check_strings(&self, first: u64) -> Result<()> {
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
            dataset: self.dataset,
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
