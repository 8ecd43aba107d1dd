//! A source in another order: partitions are row groups, and ranges of their rows are units.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use sawmill_profile::{Control, Error, Kind, Result};

use super::Order;
use super::addressed::{Addressed, Fetcher, Wanted};
use super::build::Builder;
use super::in_order::in_order;
use super::index::{Index, Part};
use super::keys::Keying;
use super::partition::{PartitionedBy, Slot};
use super::workspace::IndexPlace;
use crate::condition::pruning::{Known, Nulls};
use crate::units::{
    Facts, Read, RowPlace, Source, SourceFile, Unit, UnitKey, UnitReader, counted_places, cut, recut,
};

/// Most rows and bytes that a reader gathers at once.
const WINDOW_ROWS: u64 = 64 << 10;
const WINDOW_BYTES: u64 = 8 << 20;

/// The rows of a source, sorted and partition by partition.
pub struct OrderedRows<'a> {
    addressed: &'a dyn Addressed,
    index: Index,
    order: Order,
    a_day: i64,
    files: Vec<SourceFile>,
}

/// A partition, as [`OrderedRows::partitions`] lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The common property of its rows.
    pub slot: Slot,
    /// How many there are.
    pub rows: u64,
    /// Their bytes in the source.
    pub bytes: u64,
}

impl<'a> OrderedRows<'a> {
    /// Checks that a source can be read in this order, without reading its rows.
    ///
    /// # Errors
    /// A column that does not exist, or whose type does not fit; a source of nested tables, whose rows are
    /// not known.
    pub fn check(source: &dyn Source, order: &Order) -> Result<()> {
        if !source.facts().knows_rows {
            return Err(Error::new(Kind::Config, "tables of nested values cannot be sorted")
                .at("--sort-by")
                .advise("load nested values as jsonb, or leave the option out"));
        }
        Keying::new(source.schema(), order).map(drop)
    }

    /// Builds the index of a source: reads the columns that decide the order, on all cores. The phase of
    /// `control` counts the rows.
    ///
    /// # Errors
    /// Errors of [`check`](Self::check); values that do not have the type of their column; a disk that is full;
    /// a raised cancel flag.
    pub fn open(
        addressed: &'a dyn Addressed,
        order: &Order,
        place: &IndexPlace,
        control: &Control<'_>,
    ) -> Result<Self> {
        let source = addressed.source();
        Self::check(source, order)?;
        let keying = Keying::new(source.schema(), order)?;
        let index = match in_order(source, order, &keying, control)? {
            Some(index) => index,
            None => Builder { addressed, keying: &keying, place }.build(control)?,
        };
        source.check_unchanged()?;
        let files = files_of(source);
        Ok(Self { addressed, index, order: order.clone(), a_day: keying.a_day(), files })
    }

    /// The partitions, in the order of their values.
    pub fn partitions(&self) -> Vec<Partition> {
        let parts = self.index.parts.iter();
        parts.map(|part| Partition { slot: part.slot.clone(), rows: part.rows, bytes: part.bytes }).collect()
    }

    /// Whether the row groups are in order already, without an index.
    pub fn is_in_order(&self) -> bool {
        !self.index.is_on_disk()
    }

    /// Says how rows are fetched, once some were.
    pub fn way(&self) -> String {
        self.addressed.way()
    }

    /// The bytes of the index on disk.
    pub fn index_bytes(&self) -> u64 {
        self.index.bytes()
    }

    fn part(&self, key: UnitKey) -> Result<&Part> {
        let unknown = || Error::new(Kind::Source, format!("there is no partition {}", key.row_group));
        self.index.parts.get(key.row_group as usize).ok_or_else(unknown)
    }

    fn reader_over(&self, columns: &[usize], batch_rows: usize) -> Box<dyn UnitReader + '_> {
        let fetcher = self.addressed.fetcher(columns, batch_rows, self.index.copies());
        Box::new(OrderedReader { rows: self, fetcher, at: None, left: 0, found: Wanted::default() })
    }
}

/// The files of a source. A single one may have fewer rows than it has records.
fn files_of(source: &dyn Source) -> Vec<SourceFile> {
    match source.files() {
        [file] => vec![SourceFile { rows: source.rows(), ..file.clone() }],
        files => files.to_vec(),
    }
}

impl Source for OrderedRows<'_> {
    fn schema(&self) -> &SchemaRef {
        self.addressed.source().schema()
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// One worker fills a whole partition, in its order.
    fn facts(&self) -> Facts {
        let facts = self.addressed.source().facts();
        Facts {
            rows: self.index.parts.iter().map(|part| part.rows).sum(),
            order: self.order.identity(),
            keeps_runs: self.order.partition_by.is_some(),
            counts_all_rows: true,
            ..facts
        }
    }

    fn plan(&self, unit_rows: u64) -> Vec<Vec<Unit>> {
        let parts = (0u32..).zip(&self.index.parts);
        let groups = parts.map(|(number, part)| Unit::of_group(0, number, part.rows, part.bytes));
        match self.order.partition_by {
            Some(_) => cut(groups.collect(), unit_rows),
            None => recut(groups.collect(), unit_rows),
        }
    }

    fn known(&self, _file: u32, column: usize) -> Result<Vec<Known>> {
        let nothing = Known { bounds: None, nulls: Nulls::Maybe };
        let by = self
            .order
            .partition_by
            .as_ref()
            .filter(|by| self.schema().index_of(by.column()).is_ok_and(|decides| decides == column));
        let known = |part: &Part| match by {
            Some(by) => by.known(&part.slot, self.a_day),
            None => nothing.clone(),
        };
        Ok(self.index.parts.iter().map(known).collect())
    }

    fn check_unchanged(&self) -> Result<()> {
        self.addressed.source().check_unchanged()
    }

    fn locate(&self, group: UnitKey, rows: &[u64], named: bool) -> Result<Vec<RowPlace>> {
        let mut places = counted_places(rows);
        if named {
            let part = self.part(group)?;
            let mut found = Wanted::default();
            for place in &mut places {
                self.index.read(part, place.row, &mut found, 1)?;
                place.name = found.addresses.first().and_then(|address| self.addressed.place(*address));
            }
        }
        Ok(places)
    }

    fn open(&self, read: Read<'_>, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        let all: Vec<usize> = (0..self.schema().fields().len()).collect();
        self.reader_over(read.columns.unwrap_or(&all), batch_rows)
    }
}

/// Reads units: gathers a window of rows, and hands out its batches.
struct OrderedReader<'a> {
    rows: &'a OrderedRows<'a>,
    fetcher: Box<dyn Fetcher + 'a>,
    /// The partition, and its next row to gather.
    at: Option<(&'a Part, u64)>,
    /// Rows of the unit that were not gathered yet.
    left: u64,
    found: Wanted,
}

impl UnitReader for OrderedReader<'_> {
    fn start(&mut self, unit: &Unit) -> Result<()> {
        // The rest of an abandoned unit.
        while self.fetcher.next_batch()?.is_some() {}
        self.at = Some((self.rows.part(unit.key)?, unit.key.first_row));
        self.left = unit.rows;
        Ok(())
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.fetcher.next_batch()? {
                return Ok(Some(batch));
            }
            let Some((part, first)) = self.at.filter(|_| self.left > 0) else { return Ok(None) };
            let row_bytes = part.bytes / part.rows.max(1);
            let rows = self.left.min(WINDOW_ROWS).min((WINDOW_BYTES / row_bytes.max(1)).max(1));
            self.rows.index.read(part, first, &mut self.found, rows)?;
            // Rows of very different lengths: the window ends where it has enough bytes.
            let mut bytes = 0;
            let within = self.found.addresses.iter().take_while(|address| {
                let before = bytes;
                bytes += u64::from(address.len);
                before == 0 || bytes <= 2 * WINDOW_BYTES
            });
            let rows = within.count();
            self.found.addresses.truncate(rows);
            self.found.copies.truncate(rows);
            if rows == 0 {
                return Err(Error::new(Kind::Changed, "the index has fewer rows than the plan"));
            }
            self.fetcher.fetch(&self.found)?;
            self.at = Some((part, first + rows as u64));
            self.left -= rows as u64;
        }
    }
}

impl Partition {
    /// The folder of the partition's rows, such as `day=2024-01-05`. Returns the name of the column that folders
    /// name, and the value; `None` for rows without a value.
    pub fn folder(&self, by: &PartitionedBy, schema: &SchemaRef) -> (String, Option<String>) {
        let name = match by {
            PartitionedBy::Period(period, _) => period.name().to_owned(),
            PartitionedBy::List(column) => column.clone(),
        };
        let value = match (&self.slot, by) {
            (Slot::All | Slot::Null, _) => None,
            (Slot::Number(number), PartitionedBy::Period(period, _)) => {
                Some(period.text(i64::try_from(*number).unwrap_or_default()))
            }
            (slot, PartitionedBy::List(column)) => Some(super::partition::value_text(slot, schema, column)),
            (Slot::Bytes(_), PartitionedBy::Period(..)) => None,
        };
        (name, value)
    }
}
