//! A source partition by partition: the runs of its plan are the partitions of a table.
//!
//! Units count the rows of a row group as if ordered by partition, so each partition's rows are consecutive
//! and units do not overlap. A row group within one partition is read unchanged. One with several partitions
//! is read once for each of them, skipping the rows of the others.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use sawmill_profile::format_counted;
use sawmill_source::{
    Error, Facts, Kind, Known, Read, Result, RowPlace, Source, SourceFile, Unit, UnitKey, UnitReader,
};

use crate::partition::slot::{Book, Rule, Unplaced};
use crate::partition::survey::{Partitions, Share};

/// Rows of a batch that is read only to find the rows of a partition.
const PLACE_BATCH: usize = 8192;

/// The rows of a source in the order of their partitions.
pub(crate) struct PartitionedRows<'a> {
    source: &'a dyn Source,
    partitions: Arc<Partitions>,
    rule: Rule,
}

impl<'a> PartitionedRows<'a> {
    /// `None` if the partitions of rows are unknown.
    pub(crate) fn new(source: &'a dyn Source, partitions: &Arc<Partitions>) -> Option<Self> {
        let rule = partitions.rule.clone()?;
        Some(Self { source, partitions: Arc::clone(partitions), rule })
    }
}

impl Source for PartitionedRows<'_> {
    fn schema(&self) -> &SchemaRef {
        self.source.schema()
    }

    fn files(&self) -> &[SourceFile] {
        self.source.files()
    }

    /// One worker fills a whole partition.
    fn facts(&self) -> Facts {
        Facts { keeps_runs: true, counts_all_rows: false, ..self.source.facts() }
    }

    fn plan(&self, unit_rows: u64) -> Vec<Vec<Unit>> {
        let mut runs = vec![Vec::new(); self.partitions.count()];
        for group in self.source.plan(u64::MAX) {
            let Some(first) = group.first() else { continue };
            let (rows, bytes) =
                group.iter().fold((0, 0), |sum, unit| (sum.0 + unit.rows, sum.1 + unit.bytes));
            for share in self.partitions.shares(first.key.file, first.key.row_group) {
                let Some(run) = runs.get_mut(share.partition as usize) else { continue };
                let mut done = 0;
                while done < share.rows {
                    let take = unit_rows.max(1).min(share.rows - done);
                    let key = UnitKey { first_row: share.first + done, ..first.key };
                    let bytes = u128::from(bytes) * u128::from(take) / u128::from(u64::max(rows, 1));
                    run.push(Unit { key, rows: take, bytes: bytes as u64 });
                    done += take;
                }
            }
        }
        runs
    }

    /// Facts about a whole row group also hold for its rows in each partition.
    fn known(&self, file: u32, column: usize) -> Result<Vec<Known>> {
        self.source.known(file, column)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.source.check_unchanged()
    }

    fn locate(&self, group: UnitKey, rows: &[u64], named: bool) -> Result<Vec<RowPlace>> {
        let mut places = Vec::with_capacity(rows.len());
        while let Some(left) = rows.get(places.len()..).filter(|left| !left.is_empty()) {
            let Some(share) = self.partitions.share_of(UnitKey { first_row: left[0], ..group }) else {
                break;
            };
            let here = left.partition_point(|row| *row < share.first + share.rows);
            let found = self.source_rows(group, share, &left[..here])?;
            let located = self.source.locate(group, &found, named)?;
            let all = located.len() == here;
            places.extend(located);
            if !all {
                break;
            }
        }
        Ok(places)
    }

    fn open(&self, read: Read<'_>, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        let inner = self.source.open(Read { columns: None, numbered: false, ..read }, batch_rows);
        read.of(Box::new(self.reader_over(inner, self.partitions.column)))
    }
}

impl PartitionedRows<'_> {
    /// Which rows of a row group, as the source counts them, are at these positions of a share, in the order of
    /// partitions. For a row group with several partitions the column that decides them is read again.
    fn source_rows(&self, group: UnitKey, share: Share, rows: &[u64]) -> Result<Vec<u64>> {
        if share.rows == share.of {
            return Ok(rows.to_vec());
        }
        let inner = self.source.reader_of(&[self.partitions.column], PLACE_BATCH);
        let mut reader = self.reader_over(inner, 0);
        let key = UnitKey { first_row: share.first, ..group };
        reader.start(&Unit { key, rows: share.rows, bytes: 0 })?;
        let (mut found, mut at) = (Vec::with_capacity(rows.len()), share.first);
        while found.len() < rows.len() && reader.next_batch()?.is_some() {
            let end = at + reader.delivered.len() as u64;
            let here = rows[found.len()..].iter().take_while(|row| (at..end).contains(row));
            found.extend(here.filter_map(|row| reader.delivered.get((row - at) as usize)));
            at = end;
        }
        Ok(found)
    }

    /// A reader over one of the source's readers, in whose batches the partition column has this position.
    fn reader_over<'b>(&'b self, inner: Box<dyn UnitReader + 'b>, column: usize) -> PartitionedReader<'b> {
        PartitionedReader {
            rows: self,
            inner,
            column,
            book: Book::beginning_with(self.partitions.slots.iter().cloned(), self.partitions.count()),
            numbers: Vec::new(),
            open: None,
            left: 0,
            delivered: Vec::new(),
        }
    }
}

/// Reads units of one partition after the other.
struct PartitionedReader<'a> {
    rows: &'a PartitionedRows<'a>,
    inner: Box<dyn UnitReader + 'a>,
    /// The position of the partition column.
    column: usize,
    book: Book,
    numbers: Vec<u32>,
    open: Option<OpenShare>,
    /// Rows of the unit that were not delivered yet.
    left: u64,
    /// The row numbers of the last batch in its row group, if only some of the group's rows are delivered.
    delivered: Vec<u64>,
}

/// A share that is being read.
struct OpenShare {
    share: Share,
    /// The next row, in the order of partitions.
    at: UnitKey,
    /// The row of the source with which the next batch begins.
    source_row: u64,
    /// Rows of a batch beyond the end of its unit, with their numbers.
    rest: Option<(RecordBatch, Vec<u64>)>,
}

impl OpenShare {
    /// Whether the whole row group is in this partition, and is read unchanged.
    fn is_whole(&self) -> bool {
        self.share.rows == self.share.of
    }
}

impl UnitReader for PartitionedReader<'_> {
    fn start(&mut self, unit: &Unit) -> Result<()> {
        self.left = unit.rows;
        self.delivered.clear();
        let Some(share) = self.rows.partitions.share_of(unit.key) else {
            return Err(Error::new(Kind::Source, "a unit belongs to no partition").at(self.place(unit.key)));
        };
        if let Some(open) = &self.open
            && open.at == unit.key
            && open.share == share
            && !open.is_whole()
        {
            return Ok(());
        }
        let mut open = OpenShare { share, at: unit.key, source_row: 0, rest: None };
        if open.is_whole() {
            open.source_row = unit.key.first_row;
            self.inner.start(unit)?;
            self.open = Some(open);
            return Ok(());
        }
        let group = Unit { key: UnitKey { first_row: 0, ..unit.key }, rows: share.of, ..*unit };
        self.inner.start(&group)?;
        open.at.first_row = share.first;
        self.open = Some(open);
        let mut before = unit.key.first_row - share.first;
        while before > 0 {
            match self.take(before)? {
                Some((batch, _)) => before -= batch.num_rows() as u64,
                None => return Err(self.missing(before)),
            }
        }
        Ok(())
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.left == 0 {
            return Ok(None);
        }
        let Some(open) = &mut self.open else { return Ok(None) };
        if open.is_whole() {
            let batch = self.inner.next_batch()?;
            let rows = batch.as_ref().map_or(0, RecordBatch::num_rows) as u64;
            open.at.first_row += rows;
            self.left -= rows.min(self.left);
            return Ok(batch);
        }
        match self.take(self.left)? {
            Some((batch, rows)) => {
                self.left -= batch.num_rows() as u64;
                self.delivered = rows;
                Ok(Some(batch))
            }
            None => Err(self.missing(self.left)),
        }
    }
}

impl PartitionedReader<'_> {
    /// The next rows of the share, at most `most`, with their numbers in the row group; `None` at its end.
    fn take(&mut self, most: u64) -> Result<Option<(RecordBatch, Vec<u64>)>> {
        loop {
            let Some(open) = &mut self.open else { return Ok(None) };
            let (batch, mut rows) = match open.rest.take() {
                Some(rest) => rest,
                None => match self.inner.next_batch()? {
                    None => return Ok(None),
                    Some(batch) => self.of_partition(&batch)?,
                },
            };
            if batch.num_rows() == 0 {
                continue;
            }
            let Some(open) = &mut self.open else { return Ok(None) };
            let take = usize::try_from(most).unwrap_or(usize::MAX).min(batch.num_rows());
            if take < batch.num_rows() {
                open.rest = Some((batch.slice(take, batch.num_rows() - take), rows.split_off(take)));
            }
            open.at.first_row += take as u64;
            return Ok(Some((batch.slice(0, take), rows)));
        }
    }

    /// The rows of a batch that belong to the open share's partition, with their numbers in the row group.
    fn of_partition(&mut self, batch: &RecordBatch) -> Result<(RecordBatch, Vec<u64>)> {
        let Some(open) = &mut self.open else { return Ok((batch.slice(0, 0), Vec::new())) };
        let (partition, first, key) = (open.share.partition, open.source_row, open.at);
        open.source_row += batch.num_rows() as u64;
        let Self { rows: PartitionedRows { rule, .. }, column, book, numbers, .. } = self;
        let changed = |what: String| Error::new(Kind::Changed, what).advise("run the same command again");
        let Some(column) = batch.columns().get(*column) else {
            return Err(changed("the partition column no longer exists".to_owned()));
        };
        let numbered = rule.numbers(column.as_ref(), book, numbers);
        numbered.map_err(|unplaced| {
            let what = match unplaced {
                Unplaced::Value(row, what) => {
                    format!("the value of row {} has no partition: {what}", first + row as u64)
                }
                Unplaced::TooMany => {
                    "a value has no partition: it was not in the file when partitions were counted".to_owned()
                }
            };
            changed(what).at(self.place(key))
        })?;
        let numbers = &self.numbers;
        let mask = BooleanBuffer::collect_bool(numbers.len(), |row| numbers[row] == partition);
        let rows = mask.set_indices().map(|row| first + row as u64).collect();
        let batch = filter_record_batch(batch, &BooleanArray::new(mask, None));
        Ok((batch.map_err(|error| Error::new(Kind::Source, error.to_string()))?, rows))
    }

    fn missing(&self, rows: u64) -> Error {
        let key = self.open.as_ref().map(|open| open.at);
        let rows = format_counted(rows, "row");
        Error::new(Kind::Changed, format!("a partition lacks {rows}"))
            .at(key.map(|key| self.place(key)).unwrap_or_default())
            .advise("the file has changed since its partitions were counted: run the same command again")
    }

    fn place(&self, key: UnitKey) -> String {
        format!("{}, row group {}", self.rows.name_of(key.file), key.row_group)
    }
}
