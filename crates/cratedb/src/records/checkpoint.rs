//! The records of loads in the cluster: schema `sawmill` with the tables `loads` and `units`.
//!
//! CrateDB has no transactions: a unit's record is written when the server has acknowledged all of the
//! unit's rows. A crash between the two has the unit sent again, which its key makes harmless. (Names of
//! schemas must not begin with an underscore in older versions.)

mod units;

use std::collections::{HashMap, HashSet};
use std::time::{SystemTime, UNIX_EPOCH};

use arrow_schema::TimeUnit;
use sawmill_loader::{EarlierLoad, RecordedFiles, Tally};
use sawmill_source::{Control, Error, Kind, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::connect::client::Client;
use crate::records::shape::Shape;
use crate::table::names::quote;
pub(crate) use units::UnitRecord;

/// The checkpoint tables.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoints {
    schema: String,
    retries: u32,
}

/// The progress of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Loading,
    /// All rows are in; the table is being put in its place.
    Placing,
    Complete,
}

impl State {
    fn of(name: &str) -> Self {
        match name {
            "complete" => Self::Complete,
            "placing" => Self::Placing,
            _ => Self::Loading,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Placing => "placing",
            Self::Complete => "complete",
        }
    }
}

/// Columns that the tables of earlier versions did not have.
const ADDED: [(&str, &str, &str); 10] = [
    ("loads", "begun", "TEXT"),
    ("loads", "completed", "TEXT"),
    ("loads", "stamps", "ARRAY(TEXT)"),
    ("loads", "mapping", "TEXT"),
    ("loads", "shape", "TEXT INDEX OFF STORAGE WITH (columnstore = false)"),
    ("units", "refused", TALLY),
    ("loads", "runs", "BIGINT"),
    ("loads", "audited", "BIGINT"),
    ("units", "there_before", TALLY),
    ("units", "tags", TALLY),
];

/// JSON of any length, which no search asks for.
const TALLY: &str = "TEXT INDEX OFF STORAGE WITH (columnstore = false)";

/// A load's row.
#[derive(Clone, Debug)]
pub(crate) struct LoadRecord {
    pub id: String,
    pub state: State,
    pub unit_rows: u64,
    pub files: RecordedFiles,
    /// Rows of the table as they were counted: before the load as long as it is under way, at its end when it
    /// is complete.
    pub rows: u64,
    /// What the table held before, where rows are appended and will be verified.
    pub before: Option<Tally>,
    /// What the load makes; none in records of earlier versions.
    pub shape: Option<Shape>,
    /// Runs that have begun, this one included: tags begin with their number.
    pub runs: u64,
}

impl LoadRecord {
    /// Rows that the table had before the load: where they gather in a table of their own, none.
    pub(crate) fn rows_before(&self) -> u64 {
        if self.state == State::Loading { self.rows } else { 0 }
    }
}

/// A load as [`crate_status`](crate::crate_status) shows it.
#[derive(Clone, Debug)]
pub(crate) struct RecordedLoad {
    pub id: String,
    pub target: String,
    pub mode: String,
    pub state: State,
    pub files: Vec<String>,
    /// Moments by the clock of the loader, UTC, RFC 3339; none in records of earlier versions.
    pub begun: Option<String>,
    pub completed: Option<String>,
    /// Requests whose rows were counted when the load ended; none of loads without tags.
    pub audited: Option<u64>,
}

/// A load into the table that is looked at.
pub(crate) struct LoadIntoTable {
    pub load: EarlierLoad,
    /// Rows of the table as it was counted when the load was complete.
    pub rows: u64,
    /// When that was; none of loads that are not, and in records of earlier versions.
    pub completed: Option<String>,
    /// As of [`LoadRecord::shape`].
    pub shape: Option<Shape>,
}

fn record_is_gone(client: &Client) -> Error {
    Error::new(Kind::Changed, "the record of the load is gone")
        .at(client.place())
        .advise("another command forgot the load (sawmill load forget) while it ran: load again")
}

/// A tally as it is stored.
fn stored(tally: &Tally) -> Value {
    json!([tally.rows, tally.content_sum.to_string(), tally.non_null])
}

/// The files' stamps; an empty text where there is none.
fn stored_stamps(files: &RecordedFiles) -> Value {
    files.stamps.iter().map(|stamp| stamp.as_deref().unwrap_or_default()).collect()
}

fn recorded_files(
    names: Vec<String>,
    fingerprints: Vec<String>,
    stamps: Option<Vec<String>>,
) -> RecordedFiles {
    let stamps = stamps.unwrap_or_else(|| vec![String::new(); names.len()]).into_iter();
    let stamps = stamps.map(|stamp| (!stamp.is_empty()).then_some(stamp)).collect();
    RecordedFiles { names, fingerprints, stamps }
}

/// This moment, UTC, RFC 3339.
fn now() -> String {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis());
    let mut text = Vec::new();
    crate::encode::json::write_stamp(since_1970 as i64, TimeUnit::Millisecond, true, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// A shape that this version cannot read is as good as none.
fn read_shape(text: Option<String>) -> Option<Shape> {
    text.and_then(|text| serde_json::from_str(&text).ok())
}

fn read_stored(text: Option<String>) -> Result<Option<Tally>> {
    let Some(text) = text else { return Ok(None) };
    let (rows, sum, non_null): (u64, String, Vec<u64>) = serde_json::from_str(&text)
        .map_err(|error| Error::new(Kind::Server, format!("cannot read the checkpoint: {error}")))?;
    read_tally(rows, &sum, non_null).map(Some)
}

fn read_tally(rows: u64, sum: &str, non_null: Vec<u64>) -> Result<Tally> {
    let content_sum = sum.parse().map_err(|_| {
        Error::new(Kind::Server, format!("the checkpoint holds the content sum {sum:?}"))
            .advise("forget the load and start it again")
    })?;
    Ok(Tally { rows, content_sum, non_null })
}

impl Checkpoints {
    pub(crate) fn new(schema: &str, retries: u32) -> Self {
        Self { schema: schema.to_owned(), retries }
    }

    /// The same for what is better asked again later than tried again now.
    pub(crate) fn at_once(&self) -> Self {
        Self { schema: self.schema.clone(), retries: 0 }
    }

    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    pub(crate) fn table(&self, name: &str) -> String {
        format!("{}.{}", quote(&self.schema), quote(name))
    }

    pub(crate) fn run(
        &self,
        client: &mut Client,
        statement: &str,
        arguments: &[Value],
        control: &Control<'_>,
    ) -> Result<crate::connect::client::Answer> {
        client.sql(statement, arguments, self.retries, control)
    }

    /// Whether the tables exist.
    pub(crate) fn exist(&self, client: &mut Client, control: &Control<'_>) -> Result<bool> {
        let statement = "SELECT count(*) FROM information_schema.tables WHERE table_schema = ? AND table_name IN ('loads', 'units')";
        let answer = self.run(client, statement, &[json!(self.schema)], control)?;
        Ok(answer.all::<(i64,)>()?.first().is_some_and(|(count,)| *count == 2))
    }

    /// Creates the tables where they are missing.
    pub(crate) fn create(&self, client: &mut Client, control: &Control<'_>) -> Result<()> {
        self.create_leases(client, control)?;
        if self.exist(client, control)? {
            return self.add_columns(client, control);
        }
        let loads = format!(
            "CREATE TABLE IF NOT EXISTS {} (\"load_id\" TEXT PRIMARY KEY, \"target\" TEXT, \"mode\" TEXT, \"state\" TEXT, \
             \"unit_rows\" BIGINT, \"files\" ARRAY(TEXT), \"fingerprints\" ARRAY(TEXT), \"rows\" BIGINT, \
             \"content_sum\" TEXT, \"before\" TEXT INDEX OFF STORAGE WITH (columnstore = false), \
             \"begun\" TEXT, \"completed\" TEXT, \"stamps\" ARRAY(TEXT), \"mapping\" TEXT, \
             \"shape\" TEXT INDEX OFF STORAGE WITH (columnstore = false), \"runs\" BIGINT, \"audited\" BIGINT) \
             CLUSTERED INTO 1 SHARDS",
            self.table("loads"),
        );
        let units = format!(
            "CREATE TABLE IF NOT EXISTS {} (\"load_id\" TEXT, \"file\" INTEGER, \"row_group\" INTEGER, \"first_row\" BIGINT, \
             \"rows\" BIGINT, \"rejected\" BIGINT, \"content_sum\" TEXT, \"non_null\" ARRAY(BIGINT), \
             \"refused\" {TALLY}, \"there_before\" {TALLY}, \"tags\" {TALLY}, PRIMARY KEY (\"load_id\", \"file\", \"row_group\", \"first_row\")) CLUSTERED INTO 1 SHARDS",
            self.table("units")
        );
        for statement in [loads, units] {
            self.run(client, &statement, &[], control)?;
        }
        Ok(())
    }

    /// The columns that the tables lack: those of earlier versions lack some.
    fn lacking(
        &self,
        client: &mut Client,
        control: &Control<'_>,
    ) -> Result<Vec<(&'static str, &'static str, &'static str)>> {
        let statement = "SELECT table_name, column_name FROM information_schema.columns \
                         WHERE table_schema = ? AND table_name IN ('loads', 'units')";
        let answer = self.run(client, statement, &[json!(self.schema)], control)?;
        let there: HashSet<(String, String)> = answer.all::<(String, String)>()?.into_iter().collect();
        let is_there = |table: &str, column: &str| there.contains(&(table.to_owned(), column.to_owned()));
        Ok(ADDED.into_iter().filter(|(table, column, _)| !is_there(table, column)).collect())
    }

    /// Adds the columns that records of earlier versions lack.
    fn add_columns(&self, client: &mut Client, control: &Control<'_>) -> Result<()> {
        let lacking = self.lacking(client, control)?;
        if lacking.is_empty() {
            return Ok(());
        }
        let mut refused = Ok(());
        for (table, column, kind) in lacking {
            let statement = format!("ALTER TABLE {} ADD COLUMN {} {kind}", self.table(table), quote(column));
            // Refused where the column is there: of two loads that add it at once to the second, and after a
            // lost answer.
            if let Err(error) = self.run(client, &statement, &[], control) {
                refused = Err(error);
            }
        }
        if self.lacking(client, control)?.is_empty() { Ok(()) } else { refused }
    }

    /// All loads, the latest first.
    pub(crate) fn all(&self, client: &mut Client, control: &Control<'_>) -> Result<Vec<RecordedLoad>> {
        type Row = (String, String, String, String, Vec<String>);
        let table = self.table("loads");
        self.run(client, &format!("REFRESH TABLE {table}"), &[], control)?;
        let statement =
            format!("SELECT \"load_id\", \"target\", \"mode\", \"state\", \"files\" FROM {table}");
        let rows = self.run(client, &statement, &[], control)?.all::<Row>()?;
        type More = (Option<String>, Option<String>, Option<u64>);
        let mut more: HashMap<String, More> = HashMap::new();
        if self.lacking(client, control)?.iter().all(|(table, ..)| *table != "loads") {
            let statement = format!("SELECT \"load_id\", \"begun\", \"completed\", \"audited\" FROM {table}");
            let rows = self.run(client, &statement, &[], control)?.all()?.into_iter();
            more.extend(
                rows.map(|(id, begun, completed, audited): (String, _, _, _)| {
                    (id, (begun, completed, audited))
                }),
            );
        }
        let loads = rows.into_iter().map(|(id, target, mode, state, files)| {
            let (begun, completed, audited) = more.remove(&id).unwrap_or_default();
            RecordedLoad { id, target, mode, state: State::of(&state), files, begun, completed, audited }
        });
        let mut loads: Vec<RecordedLoad> = loads.collect();
        loads.sort_by(|a, b| (&b.begun, &a.id).cmp(&(&a.begun, &b.id)));
        Ok(loads)
    }

    /// The loads into a table, in the order in which they began.
    pub(crate) fn of_table(
        &self,
        client: &mut Client,
        target: &str,
        control: &Control<'_>,
    ) -> Result<Vec<LoadIntoTable>> {
        #[derive(Deserialize)]
        struct Row(
            String,
            String,
            String,
            u64,
            Vec<String>,
            Option<Vec<String>>,
            Option<Vec<String>>,
            Option<String>,
            Option<u64>,
            Option<String>,
            Option<String>,
            Option<String>,
        );
        let table = self.table("loads");
        self.run(client, &format!("REFRESH TABLE {table}"), &[], control)?;
        let statement = format!(
            "SELECT \"load_id\", \"mode\", \"state\", \"unit_rows\", \"files\", \"fingerprints\", \"stamps\", \"mapping\", \
             \"rows\", \"begun\", \"completed\", \"shape\" FROM {table} WHERE \"target\" = ?"
        );
        let mut rows = self.run(client, &statement, &[json!(target)], control)?.all::<Row>()?;
        rows.sort_by(|a, b| (&a.9, &a.0).cmp(&(&b.9, &b.0)));
        let loads = rows.into_iter().map(|row| {
            let Row(
                id,
                mode,
                state,
                unit_rows,
                names,
                fingerprints,
                stamps,
                mapping,
                rows,
                _,
                completed,
                shape,
            ) = row;
            let complete = State::of(&state) == State::Complete;
            let files = recorded_files(names, fingerprints.unwrap_or_default(), stamps);
            LoadIntoTable {
                rows: rows.unwrap_or(0),
                completed: completed.filter(|_| complete),
                shape: read_shape(shape),
                load: EarlierLoad {
                    id,
                    mode,
                    table: None,
                    unit_rows: unit_rows.max(1),
                    files,
                    complete,
                    mapping,
                },
            }
        });
        Ok(loads.collect())
    }

    /// A load's row.
    pub(crate) fn find(
        &self,
        client: &mut Client,
        id: &str,
        control: &Control<'_>,
    ) -> Result<Option<LoadRecord>> {
        #[derive(Deserialize)]
        struct Row(
            String,
            u64,
            Vec<String>,
            Vec<String>,
            Option<Vec<String>>,
            Option<u64>,
            Option<String>,
            Option<String>,
            Option<u64>,
        );
        let statement = format!(
            "SELECT \"state\", \"unit_rows\", \"files\", \"fingerprints\", \"stamps\", \"rows\", \"before\", \"shape\", \"runs\" FROM {} \
             WHERE \"load_id\" = ?",
            self.table("loads")
        );
        let answer = self.run(client, &statement, &[json!(id)], control)?;
        let Some(Row(state, unit_rows, names, fingerprints, stamps, rows, before, shape, runs)) =
            answer.all::<Row>()?.into_iter().next()
        else {
            return Ok(None);
        };
        let before = read_stored(before)?;
        Ok(Some(LoadRecord {
            id: id.to_owned(),
            state: State::of(&state),
            unit_rows: unit_rows.max(1),
            files: recorded_files(names, fingerprints, stamps),
            rows: rows.unwrap_or(0),
            before,
            shape: read_shape(shape),
            runs: runs.unwrap_or(1),
        }))
    }

    /// Writes a load's row and removes what an earlier load of the same name has left.
    pub(crate) fn begin(
        &self,
        client: &mut Client,
        record: &LoadRecord,
        [target, mode, mapping]: [&str; 3],
        control: &Control<'_>,
    ) -> Result<()> {
        self.delete(client, "load_id", &record.id, control)?;
        let statement = format!(
            "INSERT INTO {} (\"load_id\", \"target\", \"mode\", \"state\", \"unit_rows\", \"files\", \"fingerprints\", \"rows\", \"before\", \"begun\", \"stamps\", \"mapping\", \"shape\", \"runs\") \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            self.table("loads")
        );
        let arguments = [
            json!(record.id),
            json!(target),
            json!(mode),
            json!(record.state.name()),
            json!(record.unit_rows),
            json!(record.files.names),
            json!(record.files.fingerprints),
            json!(record.rows),
            json!(record.before.as_ref().map(|tally| stored(tally).to_string())),
            json!(now()),
            stored_stamps(&record.files),
            json!(mapping),
            json!(record.shape.as_ref().and_then(|shape| serde_json::to_string(shape).ok())),
            json!(record.runs),
        ];
        self.run(client, &statement, &arguments, control)?;
        Ok(())
    }

    /// Records the files' current stamps of the file system.
    pub(crate) fn set_stamps(
        &self,
        client: &mut Client,
        id: &str,
        files: &RecordedFiles,
        control: &Control<'_>,
    ) -> Result<()> {
        let statement = format!("UPDATE {} SET \"stamps\" = ? WHERE \"load_id\" = ?", self.table("loads"));
        self.run(client, &statement, &[stored_stamps(files), json!(id)], control)?;
        Ok(())
    }

    /// Records that another run of a load begins, before it sends anything.
    pub(crate) fn set_runs(
        &self,
        client: &mut Client,
        id: &str,
        runs: u64,
        control: &Control<'_>,
    ) -> Result<()> {
        let statement = format!("UPDATE {} SET \"runs\" = ? WHERE \"load_id\" = ?", self.table("loads"));
        match self.run(client, &statement, &[json!(runs), json!(id)], control)?.count()? {
            1 => Ok(()),
            _ => Err(record_is_gone(client)),
        }
    }

    /// Records how many requests an audit has found whole.
    pub(crate) fn set_audited(
        &self,
        client: &mut Client,
        id: &str,
        audited: u64,
        control: &Control<'_>,
    ) -> Result<()> {
        let statement = format!("UPDATE {} SET \"audited\" = ? WHERE \"load_id\" = ?", self.table("loads"));
        self.run(client, &statement, &[json!(audited), json!(id)], control)?;
        Ok(())
    }

    /// Records the progress of a load and the number of rows counted in the table.
    pub(crate) fn set_state(
        &self,
        client: &mut Client,
        id: &str,
        state: State,
        rows: u64,
        total: &Tally,
        control: &Control<'_>,
    ) -> Result<()> {
        let statement = format!(
            "UPDATE {} SET \"state\" = ?, \"rows\" = ?, \"content_sum\" = ?, \"completed\" = ? WHERE \"load_id\" = ?",
            self.table("loads")
        );
        let completed = (state == State::Complete).then(now);
        let arguments = [
            json!(state.name()),
            json!(rows),
            json!(total.content_sum.to_string()),
            json!(completed),
            json!(id),
        ];
        match self.run(client, &statement, &arguments, control)?.count()? {
            1 => Ok(()),
            _ => Err(record_is_gone(client)),
        }
    }

    /// Removes rows of loads and their units: those of one load, or of all loads into a table.
    pub(crate) fn delete(
        &self,
        client: &mut Client,
        column: &str,
        value: &str,
        control: &Control<'_>,
    ) -> Result<u64> {
        let (loads, units) = (self.table("loads"), self.table("units"));
        self.run(client, &format!("REFRESH TABLE {loads}"), &[], control)?;
        self.run(client, &format!("REFRESH TABLE {units}"), &[], control)?;
        let statement = format!("SELECT \"load_id\" FROM {loads} WHERE {} = ?", quote(column));
        let found = self.run(client, &statement, &[json!(value)], control)?.all::<(String,)>()?;
        let mut ids: Vec<String> = found.into_iter().map(|(id,)| id).collect();
        let forgotten = ids.len() as u64;
        if column == "load_id" && ids.is_empty() {
            ids.push(value.to_owned());
        }
        for id in ids {
            for table in [&units, &loads] {
                self.run(
                    client,
                    &format!("DELETE FROM {table} WHERE \"load_id\" = ?"),
                    &[json!(id)],
                    control,
                )?;
            }
        }
        for table in [&units, &loads] {
            self.run(client, &format!("REFRESH TABLE {table}"), &[], control)?;
        }
        Ok(forgotten)
    }

    /// Removes the records of all loads into a table but one: their rows are gone with the table that this
    /// one has taken the place of.
    pub(crate) fn delete_others(
        &self,
        client: &mut Client,
        target: &str,
        id: &str,
        control: &Control<'_>,
    ) -> Result<()> {
        for other in self.of_table(client, target, control)? {
            if other.load.id != id {
                self.delete(client, "load_id", &other.load.id, control)?;
            }
        }
        Ok(())
    }

    /// Drops the tables if no load is recorded any more and none is about to be.
    pub(crate) fn drop_if_empty(&self, client: &mut Client, control: &Control<'_>) -> Result<()> {
        let (loads, units) = (self.table("loads"), self.table("units"));
        self.run(client, &format!("REFRESH TABLE {loads}"), &[], control)?;
        let counted =
            self.run(client, &format!("SELECT count(*) FROM {loads}"), &[], control)?.all::<(i64,)>()?;
        if counted.first().is_some_and(|(count,)| *count == 0) && !self.any_leases(client, control)? {
            self.run(client, &format!("DROP TABLE IF EXISTS {units}"), &[], control)?;
            self.run(client, &format!("DROP TABLE IF EXISTS {loads}"), &[], control)?;
            self.drop_leases(client, control)?;
        }
        Ok(())
    }
}
