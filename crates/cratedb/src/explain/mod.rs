//! Explains what a load would do, without doing it.

mod ways;

use sawmill_loader::{CHANNEL, ColumnChanges, LoadOptions, Mode};
use sawmill_source::{Control, Result, Source};
use serde::Serialize;

use crate::connect::client::{Client, Cluster};
use crate::options::{LongText, Transport};
use crate::table::columns::{self, Column, Key, Purpose};
use crate::table::crate_type::Layout;
use crate::table::existing::Existing;
use crate::table::{catalogue, ddl};
use crate::target::CrateDb;

/// A load's plan.
#[derive(Clone, Debug, Serialize)]
pub struct CrateExplanation {
    /// Schema and name of the table.
    pub table: String,
    /// How the table is filled.
    pub mode: Mode,
    /// The transport.
    pub transport: String,
    /// How often a row can be in the table, and why.
    pub delivery: String,
    /// The costs of this way, and of the other ways.
    pub ways: Vec<ExplainedWay>,
    /// Where the rates of [`ways`](Self::ways) come from.
    pub measured: String,
    /// Files of the source.
    pub files: usize,
    /// Rows of the source.
    pub rows: u64,
    /// Units of work. Each is recorded when it is done; after a failure, unrecorded units are sent again.
    pub units: usize,
    /// Connections.
    pub degree: usize,
    /// Rows of a request at most.
    pub batch_rows: usize,
    /// Bytes of a request's rows at most.
    pub batch_bytes: usize,
    /// Upper bound in bytes of all encoded rows in memory.
    pub memory_bytes: u64,
    /// The columns.
    pub columns: Vec<ExplainedColumn>,
    /// The statement that creates the table, or that adds columns to it.
    pub ddl: Option<String>,
    /// The changes for columns by which the files and the table differ.
    #[serde(skip_serializing_if = "ColumnChanges::is_empty")]
    pub changes: ColumnChanges,
}

pub use ways::ExplainedWay;

/// A column of a plan.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedColumn {
    /// Its name in the table.
    pub name: String,
    /// Its type in the source.
    pub arrow: String,
    /// Its type in the table.
    pub crate_type: String,
    /// How its values are sent over the PostgreSQL wire.
    pub sent_as: String,
}

impl CrateDb {
    /// Explains a load of this source. Only mode append asks the server, for the columns and the key of the table.
    ///
    /// # Errors
    /// As [`ddl`](Self::ddl); with mode append a server that cannot be reached, and a table that does not
    /// exist or cannot hold the source's columns exactly.
    pub fn explain(
        &self,
        source: &dyn Source,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<CrateExplanation> {
        let table = self.table()?;
        let (mut existing, mut following) = (Vec::new(), (ColumnChanges::default(), None));
        let (planned, key) = match self.mode {
            Mode::Append => {
                // Report a missing key instead of refusing it.
                let mut lenient = self.clone();
                lenient.options.at_least_once = true;
                let mut client = Client::new(&Cluster::new(&self.server, std::time::Duration::ZERO, 0)?);
                let sql = &mut client.on(control);
                let purpose = if self.evolves() { Purpose::Follow } else { Purpose::Write };
                let (plan, _) = lenient.existing_plan(source, &table, purpose, sql)?;
                existing = catalogue::columns(sql, &table)?;
                if self.evolves() {
                    following = self.following(source, &existing, &table)?;
                }
                (plan.columns, plan.key)
            }
            _ => (columns::natural(source.schema(), &self.options, &table)?, self.wished_key(source)),
        };
        let columns = self.explained(&planned, &existing, source);
        let batch_bytes = options.batch_bytes.clamp(4096, Self::MAX_BATCH_BYTES);
        Ok(CrateExplanation {
            ddl: match self.mode {
                Mode::Append => following.1,
                _ => Some(ddl::create_table(
                    &table,
                    &planned,
                    &key.clone().of_finished_table(),
                    &self.options,
                )?),
            },
            table: table.to_string(),
            mode: self.mode,
            transport: self.transport_of(&key),
            delivery: self.delivery_by(&key),
            ways: ways::ways(self.mode, &key),
            measured: ways::MEASURED.to_owned(),
            files: source.files().len(),
            rows: source.rows(),
            units: source.plan(options.unit_rows).iter().map(Vec::len).sum(),
            degree: options.degree,
            batch_rows: self.options.request_rows(),
            batch_bytes,
            // Blocks in the channel, one being filled, one of small units that wait for others, one being
            // sent and its compressed copy; twice, for rows and columns.
            memory_bytes: (options.degree.max(1) * (CHANNEL + 4) * 2 * batch_bytes) as u64,
            columns,
            changes: following.0,
        })
    }

    /// The columns of a plan. `existing` holds the columns of a table that exists.
    fn explained(
        &self,
        planned: &[Column],
        existing: &[Existing],
        source: &dyn Source,
    ) -> Vec<ExplainedColumn> {
        let layout =
            Layout { objects: self.options.objects, plain_text: self.options.long_text == LongText::Noindex };
        let explained = planned.iter().map(|column| ExplainedColumn {
            name: column.name.clone(),
            arrow: source.schema().field(column.source).data_type().to_string(),
            crate_type: match existing.iter().find(|theirs| theirs.name == column.name) {
                Some(theirs) => theirs.data_type.to_string(),
                None => column.crate_type.ddl(layout),
            },
            sent_as: match column.crate_type.is_nested() {
                true => format!("JSON text, cast to {}", column.crate_type.cast()),
                false => format!("binary {}", crate::encode::unnest::array_type(&column.crate_type)),
            },
        });
        explained.collect()
    }

    /// How often rows arrive, by their key.
    fn delivery_by(&self, key: &Key) -> String {
        match (key, self.mode) {
            (Key::Row(name), _) => {
                format!("exactly once, by the row key {name:?}, which the server looks up for each row")
            }
            (Key::Own(names), _) => format!(
                "exactly once, by the primary key {}, which the server looks up for each row",
                names.join(", ")
            ),
            (Key::Tags(name), _) => format!(
                "exactly once, by batch tags: while rows gather, the column {name:?} says with which request each came; \
                 it is dropped when all are counted; this needs CrateDB 5.5 or later"
            ),
            (Key::None, Mode::Append) => {
                "at least once: the table has no primary key that the source fills".to_owned()
            }
            (Key::None, _) => {
                "at least once, by --at-least-once (without it, exactly once by batch tags)".to_owned()
            }
        }
    }

    /// The transport of the rows, as far as it is known without asking the server.
    fn transport_of(&self, key: &Key) -> String {
        match self.options.transport {
            Transport::Http => "http: bulk_args".to_owned(),
            Transport::Pg => format!("pg: UNNEST at port {}", self.server.pg_port),
            Transport::Auto if *key == Key::None && self.options.rejects.is_some() => {
                "http: bulk_args, since without a key only it tells which rows were refused".to_owned()
            }
            Transport::Auto => {
                format!(
                    "pg: UNNEST where CrateDB answers at port {}, else http: bulk_args",
                    self.server.pg_port
                )
            }
        }
    }
}
