//! Encodes batches as blocks of rows in JSON, with binary columns in addition if the transport takes them.
//!
//! A row is a JSON array. Rows are joined by commas, so that a block or any range of its rows can be put into
//! `bulk_args`. Values are copied from Arrow arrays into one buffer, which is reused. Rows are always written, even
//! if columns are sent: the content sum needs them, and if the server refuses a block of columns, its rows are sent
//! to find the faulty ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch};
use sawmill_loader::{BatchEncoder, Block, Mark, Marks, RecordedUnit, Refusal, Tally};
use sawmill_pgcopy::{Fault, write_hex};
use sawmill_source::{ROW_IN_GROUP, Result, Source, SourceFile, Unit, UnitKey};

use crate::encode::bodies::Bodies;
use crate::encode::json::write_int;
use crate::encode::json_column::JsonColumn;
use crate::encode::unnest::{ArrayColumn, beside_json};
use crate::options::CrateOptions;
use crate::table::columns::{Column, Key, Plan};
use crate::table::crate_type::CrateType;

/// Bytes of a request at most; see [`CrateDb::MAX_BATCH_BYTES`](crate::CrateDb::MAX_BATCH_BYTES).
pub(crate) const MAX_BATCH_BYTES: usize = 48 * 1024 * 1024;

/// The settings that all encoders of a load share.
#[derive(Clone, Debug)]
pub(crate) struct EncodePlan {
    pub plan: Plan,
    /// Rows of a block.
    pub rows: usize,
    /// Maximum bytes of a block's rows, and also of its columns if there are any. A larger row gets a separate
    /// block.
    pub bytes: usize,
    /// Bytes of a single row's values, beyond which it fits no request; see [`longest_row`].
    pub longest_row: usize,
    /// Whether to write columns as well.
    pub columns: bool,
    /// Rows that cannot be represented are left out and reported with their block.
    pub leave_out: bool,
    /// Hash of each file's identity, for the row key.
    pub files: Vec<u64>,
    /// The sums of rows that the server has refused, by unit: totals of units are without them.
    pub refused: Arc<BTreeMap<UnitKey, Tally>>,
    /// Buffers of blocks.
    pub bodies: Arc<Bodies>,
}

/// The sums of refused rows by unit.
pub(crate) fn refused<'u>(
    units: impl Iterator<Item = (&'u UnitKey, &'u RecordedUnit)>,
) -> Arc<BTreeMap<UnitKey, Tally>> {
    Arc::new(units.filter_map(|(key, unit)| Some((*key, unit.refused.clone()?))).collect())
}

impl EncodePlan {
    /// How a source's rows are encoded for requests of this size, row by row and with an error for what cannot be
    /// represented.
    pub(crate) fn new(options: &CrateOptions, source: &dyn Source, bytes: usize, plan: Plan) -> Self {
        let bytes = bytes.clamp(4096, MAX_BATCH_BYTES);
        Self {
            rows: options.request_rows(),
            bytes,
            longest_row: longest_row(0),
            columns: false,
            leave_out: false,
            files: file_hashes(source),
            refused: Arc::default(),
            bodies: Bodies::new(bytes),
            plan,
        }
    }
}

/// The identities of a source's files in row keys. Units of files in order together have rows of all of them.
fn file_hashes(source: &dyn Source) -> Vec<u64> {
    let (files, order) = (source.files(), source.facts().order);
    let each = files.iter().map(file_hash);
    if order.is_empty() {
        each.collect()
    } else {
        let all = format!("{order} {:?}", each.collect::<Vec<_>>());
        vec![xxhash_rust::xxh3::xxh3_64(all.as_bytes()); files.len()]
    }
}

/// The identity of a file in row keys: name, length and footer.
pub(crate) fn file_hash(file: &SourceFile) -> u64 {
    xxhash_rust::xxh3::xxh3_64(format!("{}\0{}", file.name, file.fingerprint).as_bytes())
}

/// Encodes the batches of one connection.
pub(crate) struct CrateEncoder {
    encode: Arc<EncodePlan>,
    body: Vec<u8>,
    marks: Marks,
    arrays: Vec<ArrayColumn>,
    /// A value of the block does not fit its column's binary type: the block is sent as rows only.
    by_row: bool,
    /// Upper bound of a row's binary columns in bytes, beyond its JSON; 0 if none are sent.
    beside: usize,
    /// Beginning of the row keys of the unit.
    key: Vec<u8>,
    /// The unit's first row, as units count, and the next row: its number in the unit.
    first_row: u64,
    next: u32,
    tally: Tally,
    /// The unit's rows that the server has refused.
    refused: Tally,
}

/// The server's default `http.max_content_length`.
const MAX_REQUEST_SIZE: usize = 104_857_600;

/// Bytes that a row's values may have with a statement of this length around them: a longer one has no place
/// in any request. Room for brackets and the row key is left.
pub(crate) fn longest_row(statement: usize) -> usize {
    MAX_REQUEST_SIZE.saturating_sub(statement + 256)
}

impl CrateEncoder {
    pub(crate) fn new(encode: Arc<EncodePlan>) -> Self {
        let columns = encode.plan.columns.len();
        let widths = encode.plan.columns.iter().map(|column| beside_json(&column.crate_type));
        // The row key is a text.
        let beside = if encode.columns { widths.sum::<usize>() + 4 } else { 0 };
        Self {
            beside,
            body: encode.bodies.take(),
            marks: Marks::default(),
            arrays: Vec::new(),
            by_row: false,
            key: Vec::new(),
            first_row: 0,
            next: 0,
            tally: Tally::empty(columns),
            refused: Tally::empty(columns),
            encode,
        }
    }

    /// Writes a row at the end of the body. `place` is its number in the row group.
    fn write_row(&mut self, bound: &[JsonColumn<'_>], row: usize, place: u64) -> Result<(), (usize, Fault)> {
        let body = &mut self.body;
        if !self.marks.rows.is_empty() {
            body.push(b',');
        }
        let keyed = matches!(self.encode.plan.key, Key::Row(_));
        if keyed {
            body.extend_from_slice(b"[\"");
            body.extend_from_slice(&self.key);
            write_int(place, body);
            body.push(b'"');
        }
        // A comma precedes each value. Without a key, the opening bracket replaces the first comma.
        let start = body.len();
        for (i, column) in bound.iter().enumerate() {
            body.push(b',');
            column.write(row, body).map_err(|fault| (i, fault))?;
            if let Some(most) = self.encode.plan.longest_text
                && column.has_text()
            {
                column.check_text(row, most).map_err(|fault| (i, fault))?;
            }
        }
        if let (false, Some(first)) = (keyed, body.get_mut(start)) {
            *first = b'[';
        }
        let values = body.get(start + 1..).unwrap_or_default();
        let most = self.encode.longest_row;
        if values.len() > most {
            let what =
                format!("the row takes {} bytes of JSON; a request holds at most {most}", values.len());
            return Err((0, Fault::new(0, what)));
        }
        self.tally.content_sum.add(values);
        body.push(b']');
        Ok(())
    }

    /// Appends rows of the batch to the columns, but for those that were left out.
    fn write_columns(
        &mut self,
        bound: &[JsonColumn<'_>],
        rows: &[u32],
        base: u32,
        places: &Places<'_>,
    ) -> Result<(), Fault> {
        let encode = Arc::clone(&self.encode);
        let key = usize::from(matches!(encode.plan.key, Key::Row(_)));
        if self.arrays.is_empty() {
            self.arrays =
                (0..bound.len() + key).map(|_| ArrayColumn::new(self.encode.bodies.take())).collect();
        }
        let (keys, columns) = self.arrays.split_at_mut(key);
        if let Some(keys) = keys.first_mut() {
            for row in rows {
                let mut digits = itoa::Buffer::new();
                keys.push_text(&self.key, digits.format(places.number((row - base) as usize)).as_bytes());
            }
        }
        for ((array, column), planned) in columns.iter_mut().zip(bound).zip(encode.plan.columns.iter()) {
            // Rows between two that were left out.
            for run in rows.chunk_by(|row, next| row + 1 == *next) {
                let start = run.first().map_or(0, |row| (row - base) as usize);
                array
                    .extend(&planned.crate_type, column, start..start + run.len())
                    .map_err(|(_, fault)| fault)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self, emit: &mut dyn FnMut(Block) -> Result<()>) -> Result<()> {
        if self.marks.rows.is_empty() && self.marks.refused.is_empty() {
            return Ok(());
        }
        let body = std::mem::replace(&mut self.body, self.encode.bodies.take());
        let mut marks = std::mem::take(&mut self.marks);
        let arrays = std::mem::take(&mut self.arrays);
        self.by_row = false;
        if !marks.rows.is_empty() {
            let key = matches!(self.encode.plan.key, Key::Row(_)).then_some(&CrateType::Text);
            let types =
                key.into_iter().chain(self.encode.plan.columns.iter().map(|column| &column.crate_type));
            marks.columns = arrays
                .into_iter()
                .zip(types)
                .map(|(array, t)| self.encode.bodies.lend(array.finish(t)))
                .collect();
        }
        let rows = marks.rows.len() as u64;
        emit(Block { bytes: self.encode.bodies.lend(body), rows, marks: Some(Box::new(marks)) })
    }
}

/// The positions of a batch's rows in their row group.
enum Places<'b> {
    /// One after the other from this one on.
    From(u64),
    /// At these row numbers.
    Each(&'b [i64]),
}

impl<'b> Places<'b> {
    fn of_batch(batch: &'b RecordBatch, first: u64) -> Self {
        let numbers = batch.column_by_name(ROW_IN_GROUP);
        match numbers.and_then(|numbers| numbers.as_primitive_opt::<Int64Type>()) {
            Some(numbers) => Self::Each(numbers.values()),
            None => Self::From(first),
        }
    }

    fn number(&self, row: usize) -> u64 {
        match self {
            Self::From(first) => first + row as u64,
            Self::Each(places) => places.get(row).map_or(0, |place| *place as u64),
        }
    }

    /// The same from the unit's first row on: a row is never before the place that units count for it.
    fn in_unit(&self, row: usize, first_row: u64) -> u32 {
        u32::try_from(self.number(row).saturating_sub(first_row)).unwrap_or(u32::MAX)
    }
}

impl BatchEncoder for CrateEncoder {
    fn begin_unit(&mut self, unit: &Unit) {
        self.first_row = unit.key.first_row;
        self.next = 0;
        self.key.clear();
        let file = self.encode.files.get(unit.key.file as usize).copied().unwrap_or_default();
        write_hex(&file.to_be_bytes(), &mut self.key);
        self.key.push(b'-');
        write_int(unit.key.row_group, &mut self.key);
        self.key.push(b'-');
        self.refused = Tally::empty(self.encode.plan.columns.len());
        // Another version may have cut the row group into smaller units.
        let end = UnitKey { first_row: unit.key.first_row.saturating_add(unit.rows), ..unit.key };
        self.encode.refused.range(unit.key..end).for_each(|(_, refused)| self.refused.add(refused));
    }

    fn encode(
        &mut self,
        batch: &RecordBatch,
        emit: &mut dyn FnMut(Block) -> Result<()>,
    ) -> Result<(), Refusal> {
        let encode = Arc::clone(&self.encode);
        let columns = &encode.plan.columns;
        let refusal = |row: usize, i: usize, fault: &Fault| refusal(columns, (row, i), fault);
        let bound = bind(columns, batch)?;
        // Rows of this batch that are in the body and not yet in the columns.
        let base = self.next;
        let places = Places::of_batch(batch, self.first_row + u64::from(base));
        let mut pending: Vec<u32> = Vec::new();
        // Count all rows first; each row that is left out is subtracted below.
        for (count, column) in self.tally.non_null.iter_mut().zip(&bound) {
            *count += column.non_null(batch.num_rows());
        }
        for row in 0..batch.num_rows() {
            let start = self.body.len();
            if let Err((i, fault)) = self.write_row(&bound, row, places.number(row)) {
                self.body.truncate(start);
                if !encode.leave_out {
                    return Err(refusal(row, i, &fault));
                }
                for (count, column) in self.tally.non_null.iter_mut().zip(&bound) {
                    *count -= u64::from(!column.is_null(row));
                }
                let Refusal::Value { column, what, .. } = refusal(row, i, &fault) else { continue };
                let place = places.in_unit(row, self.first_row);
                self.marks.refused.push((place, format!("column {column:?}: {what}")));
                self.next += 1;
                continue;
            }
            self.tally.rows += 1;
            let held = self.marks.rows.len();
            if self.body.len() + (held + 1) * self.beside > encode.bytes && held > 0 {
                // The row does not fit: it begins the next body, without the comma.
                let carried = self.body[start + 1..].to_vec();
                self.body.truncate(start);
                self.columns_of(&bound, base, &places, &mut pending);
                self.flush(emit).map_err(Refusal::Stopped)?;
                self.body.extend_from_slice(&carried);
            }
            let place = places.in_unit(row, self.first_row);
            self.marks.rows.push(Mark { end: self.body.len() as u32, row: place });
            pending.push(self.next);
            self.next += 1;
            let held = self.marks.rows.len();
            if held >= encode.rows || self.body.len() + held * self.beside >= encode.bytes {
                self.columns_of(&bound, base, &places, &mut pending);
                self.flush(emit).map_err(Refusal::Stopped)?;
            }
        }
        self.columns_of(&bound, base, &places, &mut pending);
        Ok(())
    }

    fn end_unit(&mut self, emit: &mut dyn FnMut(Block) -> Result<()>) -> Result<Tally> {
        self.flush(emit)?;
        self.next = 0;
        let tally = std::mem::replace(&mut self.tally, Tally::empty(self.encode.plan.columns.len()));
        Ok(tally.minus(&self.refused))
    }
}

/// The batch's arrays as the columns write them.
fn bind<'b>(columns: &'b [Column], batch: &'b RecordBatch) -> Result<Vec<JsonColumn<'b>>, Refusal> {
    let bound = columns.iter().enumerate().map(|(i, column)| {
        let refused = |what: String| refusal(columns, (0, i), &Fault::new(0, what));
        let array: Option<&ArrayRef> = batch.columns().get(column.source);
        let array = array.ok_or_else(|| refused("the batch lacks the column".to_owned()))?;
        column.form.bind(array).map_err(refused)
    });
    bound.collect()
}

/// A value that cannot be represented, with the column's name.
fn refusal(columns: &[Column], (row, column): (usize, usize), fault: &Fault) -> Refusal {
    Refusal::Value {
        row,
        column: columns.get(column).map(|column| column.name.clone()).unwrap_or_default(),
        what: match fault.path.as_str() {
            "" => fault.what.clone(),
            path => format!("{} at {path}", fault.what),
        },
    }
}

impl CrateEncoder {
    fn columns_of(
        &mut self,
        bound: &[JsonColumn<'_>],
        base: u32,
        places: &Places<'_>,
        pending: &mut Vec<u32>,
    ) {
        // All of these rows are in the body. A value that has no place in a column, such as a timestamp out of the range of
        // the PostgreSQL wire, has the block sent row by row.
        if self.encode.columns
            && !self.by_row
            && !pending.is_empty()
            && self.write_columns(bound, pending, base, places).is_err()
        {
            self.by_row = true;
            self.arrays.clear();
        }
        pending.clear();
    }
}
