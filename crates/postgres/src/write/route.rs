//! Which way rows go into a new table, directly or through tables of the workers' own, and why.

use std::sync::Arc;

use sawmill_loader::LoadOptions;
use sawmill_pgcopy::{Enums, is_enum};
use sawmill_pgwire::Connection;
use sawmill_source::{Control, Error, Kind, Result, Source};

use crate::TableKind;
use crate::partition::by::{PartitionBy, Scheme};
use crate::partition::survey::Partitions;
use crate::records::checkpoint::Checkpoints;
use crate::table::columns;
use crate::target::Postgres;
use crate::target::Strategy;
use crate::types::enumerations;

/// Rows that are read for each row of the source, up to which reading partition by partition costs no more time than
/// it spares. Measured with three million rows of five columns in 35 months, over two connections: at about 1.6 the
/// staged way took 0.86 of the direct one's time, at 3.2 it took 0.93 of it, at 9.5 as long, and twice the client's
/// processor time.
const MOST_READ: f64 = 3.5;

/// The way that rows go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub staged: bool,
    pub why: String,
}

impl Postgres {
    /// Makes the new table a partitioned one, with a partition for each that the rows of `source` belong to. `by`
    /// names a column as it is called in the table. Only this source can then be loaded, on the way that
    /// [`strategy`](Self::strategy) has asked for before: which rows have which hash is looked for only where that is
    /// the staged one.
    ///
    /// Reads the column once, but for row groups whose statistics say enough, with as many threads as there are
    /// cores. Rows are counted on the phase of `control`.
    ///
    /// # Errors
    /// A column that is not there, or that cannot be partitioned so; a value outside of the years 1 to 9999; more
    /// than 1000 partitions; a source that cannot be read; a raised cancel flag.
    pub fn partitioned(
        mut self,
        by: &PartitionBy,
        source: &dyn Source,
        control: &Control<'_>,
    ) -> Result<Self> {
        let hashed = self.strategy == Strategy::Staged;
        self.partitions = Some(Arc::new(Partitions::survey(by, source, &self.values, hashed, control)?));
        self.check_partitions(source)?;
        Ok(self)
    }

    /// The partitions that the table will have.
    pub fn partitions(&self) -> Option<&Partitions> {
        self.partitions.as_deref()
    }

    /// The partitions of a table of this name, each with its bound and with its rows where they are known.
    pub fn partition_list(&self) -> Vec<(String, String, Option<u64>)> {
        let Some(partitions) = &self.partitions else { return Vec::new() };
        let names = partitions.names(&self.table).into_iter().enumerate();
        let line = |(partition, name): (usize, sawmill_loader::TableName)| {
            (name.to_string(), partitions.bound(partition), partitions.rows_of(partition as u32))
        };
        names.map(line).collect()
    }

    /// Refuses a partitioned table that cannot be made, or that is of another source.
    pub(crate) fn check_partitions(&self, source: &dyn Source) -> Result<()> {
        let Some(partitions) = &self.partitions else { return Ok(()) };
        let column = &partitions.by.column;
        let refused = |what: String, advice: &str| {
            let place = format!("table {}, --partition-by {}", self.table, partitions.by);
            Err(Error::new(Kind::Config, what).at(place).advise(advice))
        };
        let key = &self.kind.primary_key;
        if !self.mode.makes_the_table() {
            return refused(
                "partitions are made with a new table".into(),
                "load in mode create or replace; an existing table routes rows itself",
            );
        }
        if self.part_of.is_some() {
            return refused("one of several tables is not partitioned".into(), "load nested values as jsonb");
        }
        if !key.is_empty() && !key.contains(column) {
            let what = format!("a primary key of a partitioned table has to hold its column {column:?}");
            return refused(what, "add the column to --primary-key, or leave the key out");
        }
        if key.contains(column) && partitions.null_rows() > 0 {
            let what =
                format!("{} rows have no {column:?}, which a primary key needs", partitions.null_rows());
            return refused(what, "leave them out with --where, or leave the key out");
        }
        let found = source.schema().index_of(column).ok();
        let is_enum = found.is_some_and(|at| is_enum(source.schema().field(at)));
        if is_enum && self.values.enums == Enums::Enum && matches!(partitions.by.scheme, Scheme::Hash(_)) {
            // The server hashes the numbers of labels, which nobody knows before they are made.
            return refused(
                format!("{column:?} is to be an enumeration, by whose hash rows are not told apart"),
                "partition by list, or load such columns as text (--enums text)",
            );
        }
        if partitions.found().rows != source.rows() || found != Some(partitions.column) {
            return refused(
                "the partitions are those of another source".into(),
                "survey the source that is loaded",
            );
        }
        Ok(())
    }

    /// Why rows cannot go through tables of the workers' own, and what to do instead.
    fn refuses_staged(&self) -> Option<(&'static str, &'static str)> {
        if !self.mode.makes_the_table() {
            return Some((
                "the staged strategy makes a new table",
                "load in mode create or replace, or directly",
            ));
        }
        if self.rejects.is_some() && !self.kind.primary_key.is_empty() && !self.kind.key_after {
            // A key over all partitions is there when they are attached, when rows can no longer be put aside.
            return Some((
                "the staged strategy adds the key when all rows are in, and puts no rows aside for it",
                "load directly, say --key-after, or leave --rejects out",
            ));
        }
        match &self.partitions {
            None if !self.kind.primary_key.is_empty() => Some((
                "a table that consists of children has no primary key over all of them",
                "leave the key out, or load directly; or partition the table by a column of the key",
            )),
            Some(partitions) if partitions.rule.is_none() => Some((
                "every connection would read every row for partitions by a hash",
                "load directly, or partition by the column's values",
            )),
            _ => None,
        }
    }

    /// Decides for one of the ways.
    pub(crate) fn choose(&self, degree: usize) -> Result<Route> {
        let direct = |why: String| Ok(Route { staged: false, why });
        match (self.strategy, &self.partitions) {
            (Strategy::Direct, None) => direct("all connections copy into one table, as asked for".into()),
            (Strategy::Direct, Some(_)) => {
                direct("all connections copy into the table, and the server routes rows, as asked for".into())
            }
            (Strategy::Staged, partitions) => match (self.refuses_staged(), partitions) {
                (Some((what, advice)), _) => Err(Error::new(Kind::Config, what)
                    .at(format!("table {}, mode {}", self.table, self.mode.name()))
                    .advise(advice)),
                (None, None) => Ok(Route {
                    staged: true,
                    why: "each connection fills tables of its own, which become the table's children".into(),
                }),
                (None, Some(_)) => Ok(Route {
                    staged: true,
                    why: "each connection fills whole partitions, as asked for".into(),
                }),
            },
            (Strategy::Auto, None) if self.mode.makes_the_table() => direct(
                "all connections copy into one table (a table of private tables is made only when asked for)"
                    .into(),
            ),
            (Strategy::Auto, None) => {
                direct("all connections copy into one table (the staged strategy makes a new one)".into())
            }
            (Strategy::Auto, Some(partitions)) => Ok(self.choose_for(partitions, degree)),
        }
    }

    fn choose_for(&self, partitions: &Partitions, degree: usize) -> Route {
        let found = partitions.found();
        let read = found.rows_by_partition as f64 / found.rows.max(1) as f64;
        let count = partitions.count();
        let why_not = match self.refuses_staged() {
            Some((what, _)) => what.to_owned(),
            None if count < degree => {
                format!("there are fewer partitions ({count}) than connections ({degree})")
            }
            None if read > MOST_READ => format!(
                "partition by partition {read:.2} rows would be read for each row, more than {MOST_READ}"
            ),
            None => {
                let why = format!(
                    "each connection fills whole partitions: there are {count} for {degree} connections, and {read:.2} \
                     rows are read for each row"
                );
                return Route { staged: true, why };
            }
        };
        Route {
            staged: false,
            why: format!("all connections copy into the table, and the server routes rows: {why_not}"),
        }
    }

    /// How the table is made on one of the ways: the key of a table whose partitions are attached is added to all
    /// of them in the end.
    pub(crate) fn kind_for(&self, staged: bool) -> TableKind {
        let key_after = self.kind.key_after || (staged && self.partitions.is_some());
        TableKind { key_after, ..self.kind.clone() }
    }

    /// Which way rows would go over so many connections, and why.
    ///
    /// # Errors
    /// A way that was asked for and cannot be gone.
    pub fn way(&self, degree: usize) -> Result<String> {
        self.choose(degree).map(|way| way.to_string())
    }

    /// The statements that make the table of this name, up to its first row, and what follows in the end; partitions
    /// are called after it.
    pub(crate) fn statements(&self, source: &dyn Source, control: &Control<'_>) -> Result<Vec<String>> {
        let mut new = columns::natural(source.schema(), &self.table, self.nested, &self.values)?;
        self.kind.check(&new.columns, &self.table)?;
        enumerations::find_labels(&mut new, source, &self.values, &LoadOptions::default(), control)?;
        let create = match &self.partitions {
            None => self.kind.create(&self.table, &new, source.schema(), None),
            Some(partitions) => {
                self.check_partitions(source)?;
                let names = partitions.names(&self.table);
                partitions.create(&self.kind, &self.table, &names, |_| true, &new, source.schema())
            }
        };
        Ok(std::iter::once(create).chain(self.kind.complete(&self.table)).collect())
    }
}

impl Route {
    /// An earlier run of the same load decides, where the choice is free: with another number of connections this
    /// one might choose otherwise.
    pub(crate) fn keep_to_earlier(
        &mut self,
        postgres: &Postgres,
        connection: &Connection,
        checkpoints: &Checkpoints,
        id_of: &dyn Fn(bool) -> String,
        control: &Control<'_>,
    ) -> Result<()> {
        if postgres.strategy != Strategy::Auto || postgres.partitions.is_none() {
            return Ok(());
        }
        let allowed = self.staged || postgres.refuses_staged().is_none();
        if !allowed || !checkpoints.exist(connection, control)? {
            return Ok(());
        }
        let known = |staged: bool| checkpoints.find(connection, &id_of(staged), control);
        if known(self.staged)?.is_none() && known(!self.staged)?.is_some() {
            *self = Self { staged: !self.staged, why: "as an earlier run of this load began".to_owned() };
        }
        Ok(())
    }
}

impl std::fmt::Display for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", if self.staged { "staged" } else { "direct" }, self.why)
    }
}
