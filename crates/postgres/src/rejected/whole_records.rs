//! Records of a nested source that are rejected as a whole, because some table refuses one of their rows.
//!
//! Each flat table is loaded with all rows that it accepts. For each refused row, the record is noted in the
//! transaction of the unit ([`rejecting_unit`](crate::write::rejecting_unit)). When all tables are loaded,
//! and before they become visible, one transaction removes the rows of these records from every table,
//! corrects the units' sums, and notes for every table all records that it lacks. So records, tables and
//! rejected rows agree after any failure, and repeating the step changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sawmill_loader::{
    LoadOptions, LoadReport, Note, RejectOptions, TableName, Tally, literal, load, quote, retry_lost,
};
use sawmill_pgcopy::{Column, HEADER};
use sawmill_pgwire::{Connection, KnownServer};
use sawmill_source::{Control, Error, Kind, Result, Source, Unit, UnitKey};

use crate::encode::canonical_row::CanonicalRow;
use crate::encode::rejecting::row_ends;
use crate::nested::flat_tables::{FlatRows, FlatTable, RecordNumbers};
use crate::records::checkpoint::Checkpoints;
use crate::rejected::bad_records::{BadRecords, directory_of, of_no_unit, unit_of};
use crate::rejected::rejects::{Reject, RejectRecorder};
use crate::table::catalogue::find;
use crate::table::columns;
use crate::target::Postgres;
use crate::verify::read_back::read_copy;
use crate::verify::tuples::Tuples;
use crate::write::durable;

/// The load of several tables that rejects records.
pub(crate) struct WholeRecords<'a> {
    pub source: &'a dyn Source,
    pub server: &'a KnownServer,
    pub tables: &'a [FlatTable],
    /// Each of the tables as the target of a load of its own.
    pub targets: &'a [Postgres],
    pub records: &'a Arc<RecordNumbers>,
    pub checkpoints: &'a Checkpoints,
    pub options: &'a LoadOptions,
}

impl WholeRecords<'_> {
    /// Loads each table with the rows that it accepts, removes records of which some rows were refused from
    /// every table, and writes their file.
    ///
    /// # Errors
    /// As [`load`] for each table; more rejected records than allowed.
    pub(crate) fn load(
        &self,
        rejects: &RejectOptions,
        control: &Control<'_>,
        next: &mut dyn FnMut(&TableName),
    ) -> Result<Vec<LoadReport>> {
        let (mut bad, mut reports) = self.load_tables(rejects, control, next)?;
        let mut attempt = 0;
        while let Err(error) = self.remove(&bad, &reports, control) {
            if error.kind() != Kind::Changed || attempt >= self.options.retries {
                return Err(error);
            }
            attempt += 1;
            let (bad_now, again) = self.load_tables(rejects, control, &mut |_| {})?;
            bad = bad_now;
            reports.iter_mut().zip(again).for_each(|(report, again)| report.sent_again(again));
        }
        if bad.count() > 0 || self.options.verify {
            for ((table, target), report) in self.tables.iter().zip(self.targets).zip(&mut reports) {
                let rows = FlatRows::new(self.source, table, self.records).leaving_out(Some(&bad));
                let LoadReport { rows, content, verified, .. } = load(&rows, target, self.options, control)?;
                report.rows_loaded = report.rows_loaded.saturating_sub(report.rows.saturating_sub(rows));
                (report.rows, report.content, report.verified) = (rows, content, verified);
            }
        }
        if let Some(records) = reports.first_mut() {
            records.record_rejected(bad.count(), self.source.rows(), &rejects.path)?;
        }
        if let Some(records) = self.targets.first() {
            bad.write(&rejects.path, records.rejects_of(self.source, &records.table), self.options)?;
        }
        Ok(reports)
    }

    /// Loads each table with the rows that it accepts. Also returns the records of which some rows were
    /// refused.
    fn load_tables(
        &self,
        rejects: &RejectOptions,
        control: &Control<'_>,
        next: &mut dyn FnMut(&TableName),
    ) -> Result<(BadRecords, Vec<LoadReport>)> {
        let mut bad = BadRecords::new(directory_of(&rejects.path))?;
        let mut reports = Vec::with_capacity(self.targets.len());
        // Tables are verified when the rejected records are removed.
        let unverified = LoadOptions { verify: false, ..self.options.clone() };
        for (table, target) in self.tables.iter().zip(self.targets) {
            next(&target.table);
            let rows = FlatRows::new(self.source, table, self.records);
            let mut report = load(&rows, target, &unverified, control)?;
            report.notes.retain(|note| !matches!(note, Note::Rejected(_)));
            report.rows_rejected = 0;
            reports.push(report);
            let last = self.connected(control, |connection| {
                bad.add_recorded(self.source, self.checkpoints, target.load_id(), connection, control)
            })?;
            if let (Some((unit, last)), Some(most)) = (last, rejects.most)
                && bad.count() > most
            {
                return Err(too_many(bad.count(), self.source, unit, &last));
            }
        }
        Ok((bad, reports))
    }

    /// Removes all rows of these records from the tables, unless that was done before.
    fn remove(&self, bad: &BadRecords, reports: &[LoadReport], control: &Control<'_>) -> Result<()> {
        let taking = control.phase().phase("take out");
        self.connected(control, |connection| {
            let mut done = true;
            for target in self.targets {
                let counts = self.checkpoints.count_rejects(connection, target.load_id(), control)?;
                done &= counts.values().sum::<u64>() == bad.count();
            }
            if done {
                return Ok(());
            }
            connection.begin(control)?;
            // Without statistics the server might scan a table once for each record.
            connection.batch(control, "SET LOCAL enable_nestloop = off; SET LOCAL enable_mergejoin = off")?;
            let recorder = RejectRecorder::new(self.checkpoints, connection, control)?;
            for ((table, target), report) in self.tables.iter().zip(self.targets).zip(reports) {
                self.checkpoints.refuse_lost(connection, target.load_id(), &report.content, control)?;
                self.remove_from(table, target, bad, &recorder, connection, control)?;
            }
            durable::commit(connection, control)?;
            taking.add_rows(bad.count());
            Ok(())
        })?;
        taking.finish();
        Ok(())
    }

    /// Runs `work` on a new connection, and again if that is lost.
    fn connected<T>(
        &self,
        control: &Control<'_>,
        mut work: impl FnMut(&Connection) -> Result<T>,
    ) -> Result<T> {
        retry_lost(self.options.retries, control, || work(&self.server.connect(control)?))
    }

    fn remove_from(
        &self,
        table: &FlatTable,
        target: &Postgres,
        bad: &BadRecords,
        recorder: &RejectRecorder,
        connection: &Connection,
        control: &Control<'_>,
    ) -> Result<()> {
        let (checkpoints, id) = (self.checkpoints, target.load_id());
        let mut units: BTreeMap<UnitKey, Tally> =
            checkpoints.units(connection, id, control)?.into_iter().collect();
        checkpoints.delete_rejects(connection, id, control)?;
        bad.each_unit(|of, rejects| {
            for (unit, rejects) in by_unit(&units, of.key, rejects)? {
                let unit = Unit { key: unit, ..*of };
                connection.wait(control, recorder.record(&connection.client, id, &unit, rejects))?;
            }
            Ok(())
        })?;
        let columns = columns::natural(&table.schema, &target.table, target.nested, &target.values)?.columns;
        let written = match find(connection, &target.table.staging(), control)? {
            Some(_) => target.table.staging(),
            None => target.table.clone(),
        };
        let delete = self.delete(bad, &written, &columns, id);
        let mut deleted = Deleted::new(self.records, &units, &columns);
        let reading = read_copy(connection, &delete, |bytes| deleted.feed(bytes));
        connection.wait_for(control, reading)?;
        for (unit, gone) in deleted.into_tallies() {
            let Some(tally) = units.get_mut(&unit) else { continue };
            *tally = tally.minus(&gone);
            checkpoints.correct_unit(connection, id, unit, tally, control)?;
        }
        let mut total = Tally::empty(columns.len());
        units.values().for_each(|tally| total.add(tally));
        checkpoints.complete(connection, id, &total, control)
    }

    /// The statement that deletes the rows of a load's noted records and returns them.
    fn delete(&self, bad: &BadRecords, written: &TableName, columns: &[Column], id: &str) -> String {
        let groups: BTreeSet<(u32, u32)> = bad.units().map(|key| (key.file, key.row_group)).collect();
        let listed = |number: fn(&RecordNumbers, (u32, u32)) -> u64| {
            let numbers = groups.iter().map(|group| number(self.records, *group).to_string());
            numbers.collect::<Vec<_>>().join(",")
        };
        let (files, row_groups) = (listed(|_, (file, _)| file.into()), listed(|_, (_, group)| group.into()));
        let firsts = listed(|records, (file, group)| records.of_group(file, group));
        let returned: Vec<String> =
            columns.iter().map(|column| format!("t.{}", quote(&column.name))).collect();
        format!(
            "COPY (DELETE FROM {} t USING {} r, \
               unnest('{{{files}}}'::integer[], '{{{row_groups}}}'::integer[], '{{{firsts}}}'::bigint[]) \
                 g (file, row_group, first) \
             WHERE r.load_id = {} AND r.file = g.file AND r.row_group = g.row_group AND t._row = r.\"row\" + g.first \
             RETURNING {}) TO STDOUT (FORMAT binary)",
            written.quoted(),
            self.checkpoints.rejects_table(),
            literal(id),
            returned.join(", "),
        )
    }
}

/// Records of the row group of `key`, by the units of a table's load.
fn by_unit<'r>(
    units: &BTreeMap<UnitKey, Tally>,
    key: UnitKey,
    rejects: &'r [Reject],
) -> Result<Vec<(UnitKey, &'r [Reject])>> {
    let of = |reject: &Reject| unit_of(units, UnitKey { first_row: reject.row, ..key });
    let runs = rejects.chunk_by(|a, b| of(a) == of(b));
    runs.map(|run| run.first().and_then(of).map(|unit| (unit, run)).ok_or_else(of_no_unit)).collect()
}

/// Deleted rows, summed unit by unit as they arrive.
struct Deleted<'a> {
    numbers: &'a RecordNumbers,
    units: &'a BTreeMap<UnitKey, Tally>,
    columns: &'a [Column],
    /// Bytes of an incomplete row.
    left: Vec<u8>,
    /// Bytes of the stream's header that have not arrived.
    header: usize,
    of_units: BTreeMap<UnitKey, Tuples>,
}

impl<'a> Deleted<'a> {
    fn new(numbers: &'a RecordNumbers, units: &'a BTreeMap<UnitKey, Tally>, columns: &'a [Column]) -> Self {
        Self { numbers, units, columns, left: Vec::new(), header: HEADER.len(), of_units: BTreeMap::new() }
    }

    /// The sums of each unit's rows.
    fn into_tallies(self) -> Vec<(UnitKey, Tally)> {
        self.of_units.into_iter().map(|(unit, tuples)| (unit, tuples.into_sums().whole)).collect()
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), String> {
        let skip = self.header.min(bytes.len());
        self.header -= skip;
        self.left.extend_from_slice(&bytes[skip..]);
        let mut start = 0;
        for end in row_ends(&self.left) {
            let row = &self.left[start..end as usize];
            start = end as usize;
            // The first field is the record's number, after a count of fields and a length.
            let number =
                row.get(6..14).and_then(|number| number.first_chunk()).map(|n| u64::from_be_bytes(*n));
            let place = number.and_then(|number| self.numbers.place(number));
            let unit =
                place.and_then(|place| unit_of(self.units, place)).ok_or("a row belongs to no unit")?;
            let tuples = self.of_units.entry(unit).or_insert_with(|| {
                Tuples::new(self.columns.len(), CanonicalRow::of(self.columns, false), false)
            });
            tuples.feed(row)?;
        }
        self.left.drain(..start);
        Ok(())
    }
}

fn too_many(count: u64, source: &dyn Source, unit: UnitKey, last: &Reject) -> Error {
    let group = UnitKey { first_row: 0, ..unit };
    let name = source.files().get(group.file as usize).map(|file| file.name.as_str()).unwrap_or_default();
    let row = source.rows_in_group(group, &[last.row]).ok();
    let row = row.and_then(|rows| rows.first().copied()).unwrap_or(last.row);
    Error::new(Kind::Value, format!("{count} rows cannot be loaded, the last one: {}", last.reason))
        .at(format!("{name}, row group {}, row {row}", group.row_group))
        .advise("correct them in the source, or raise --max-rejects")
}
