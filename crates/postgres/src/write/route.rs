//! Which route rows take into a table, directly or through part tables that become partitions, and why.

use std::sync::Arc;

use sawmill_loader::LoadOptions;
use sawmill_pgcopy::{Enums, is_enum};
use sawmill_profile::format_counted;
use sawmill_source::{Control, Error, Kind, Result, Source};

use crate::TableKind;
use crate::partition::by::{PartitionBy, Scheme};
use crate::partition::survey::Partitions;
use crate::records::checkpoint::Records;
use crate::table::columns;
use crate::target::{Postgres, Strategy};
use crate::types::enumerations;
use crate::write::refusals::LEAVE_OUT;

/// The most rows read per row of the source for which reading partition by partition is not slower. Measured
/// with three million rows of five columns in 35 months over two connections: the staged route took 0.86 of
/// the direct route's time when about 1.6 rows were read per row, 0.93 with 3.2, and the same time with 9.5,
/// with twice the client's processor time.
const MAX_READ: f64 = 3.5;

/// The route that rows take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub staged: bool,
    pub why: String,
}

impl Postgres {
    /// Partitions the new table, with a partition for each value or period in `source`. `by` names a column
    /// of the table. Only this source can then be loaded, by the [`strategy`](Self::strategy) chosen before
    /// this call: rows are assigned to hash partitions only for the staged one.
    ///
    /// Reads the column once, except for row groups whose statistics suffice, with as many threads as there
    /// are cores. Rows are counted on the phase of `control`.
    ///
    /// # Errors
    /// A missing column, or one that cannot be partitioned this way; a value outside of the years 1 to 9999;
    /// more than 1000 partitions; a source that cannot be read; a raised cancel flag.
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

    /// The names of the partitions, each with its bound and, if known, its number of rows.
    pub fn partition_list(&self) -> Vec<(String, String, Option<u64>)> {
        let Some(partitions) = &self.partitions else { return Vec::new() };
        let names = partitions.names(&self.table).into_iter().enumerate();
        let line = |(partition, name): (usize, sawmill_loader::TableName)| {
            (name.to_string(), partitions.bound(partition), partitions.rows_of(partition as u32))
        };
        names.map(line).collect()
    }

    /// Refuses a partitioned table that cannot be created, or whose partitions belong to another source.
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
                "only a new table gets partitions".into(),
                "load in mode create or replace; an existing table routes rows itself",
            );
        }
        if self.several.is_some() {
            return refused(
                "tables of nested values cannot be partitioned".into(),
                "load nested values as jsonb",
            );
        }
        if !key.is_empty() && !key.contains(column) {
            let what = format!("the primary key of a partitioned table must contain its column {column:?}");
            return refused(what, "add the column to --primary-key, or leave the key out");
        }
        if key.contains(column) && partitions.null_rows() > 0 {
            let rows = format_counted(partitions.null_rows(), "row");
            let what = format!("the primary key needs {column:?}, which is null in {rows}");
            return refused(what, &format!("{LEAVE_OUT}, or load without the key"));
        }
        let found = source.schema().index_of(column).ok();
        let is_enum = found.is_some_and(|at| is_enum(source.schema().field(at)));
        if is_enum && self.values.enums == Enums::Enum && matches!(partitions.by.scheme, Scheme::Hash(_)) {
            // The server hashes the OIDs of labels, which are unknown until it creates them.
            return refused(
                format!("{column:?} becomes an enumeration, whose hash only the server knows"),
                "partition by list, or load such columns as text (--enums text)",
            );
        }
        if partitions.found().rows != source.rows() || found != Some(partitions.column) {
            return refused(
                "the partitions belong to another source".into(),
                "survey the source that you load",
            );
        }
        Ok(())
    }

    /// Why rows cannot go through part tables, and what to do instead.
    fn refuses_staged(&self) -> Option<(&'static str, &'static str)> {
        if !self.mode.makes_the_table() {
            return Some((
                "the staged strategy creates a new table",
                "load in mode create or replace, or directly",
            ));
        }
        if self.rejects.is_some() && !self.kind.primary_key.is_empty() && !self.kind.key_after {
            // A key over all partitions is created when they are attached; then rows can no longer be
            // rejected.
            return Some((
                "the staged strategy adds the key after all rows, when they can no longer be rejected",
                "load directly, say --key-after, or leave --rejects out",
            ));
        }
        match &self.partitions {
            None => Some((
                "the staged strategy fills the partitions of a table, and this one has none",
                "partition the table (--partition-by), or leave the strategy out: all connections then copy into one table",
            )),
            Some(partitions) if partitions.rule.is_none() => Some((
                "every connection would read every row for partitions by a hash",
                "load directly, or partition by the column's values",
            )),
            _ => None,
        }
    }

    /// Chooses the route.
    pub(crate) fn choose(&self, degree: usize) -> Result<Route> {
        let direct = |why: String| Ok(Route { staged: false, why });
        match (self.strategy, &self.partitions) {
            (Strategy::Direct, None) => direct("all connections copy into one table, as requested".into()),
            (Strategy::Direct, Some(_)) => {
                direct("all connections copy into the table and the server routes rows, as requested".into())
            }
            (Strategy::Staged, _) => match self.refuses_staged() {
                Some((what, advice)) => Err(Error::new(Kind::Config, what)
                    .at(format!("table {}, mode {}", self.table, self.mode.name()))
                    .advise(advice)),
                None => Ok(Route {
                    staged: true,
                    why: "each connection fills whole partitions, as requested".into(),
                }),
            },
            (Strategy::Auto, None) => direct(
                "all connections copy into one table (the staged strategy fills the partitions of a new one)"
                    .into(),
            ),
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
            None if read > MAX_READ => format!(
                "reading partition by partition would read {read:.2} rows for each row, more than {MAX_READ}"
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
            why: format!("all connections copy into the table and the server routes rows: {why_not}"),
        }
    }

    /// How the table is created: if partitions are attached, the key is added to all of them in the end.
    pub(crate) fn kind_for(&self, staged: bool) -> TableKind {
        let key_after = self.kind.key_after || staged;
        TableKind { key_after, ..self.kind.clone() }
    }

    /// The route that rows would take over `degree` connections, and why.
    ///
    /// # Errors
    /// The requested strategy is not possible.
    pub fn route(&self, degree: usize) -> Result<String> {
        self.choose(degree).map(|route| route.to_string())
    }

    /// The statements that create the table before its first row and complete it after the last. Partitions
    /// are named after it.
    pub(crate) fn statements(&self, source: &dyn Source, control: &Control<'_>) -> Result<Vec<String>> {
        let mut new = columns::natural(source.schema(), &self.table, self.nested, &self.values)?;
        new.columns = self.without_tested(new.columns);
        self.kind.check(&new.columns, &self.table)?;
        self.refuse_own_loaded_at(&new.columns, &self.table)?;
        let versions = self.add_versions(source)?;
        enumerations::find_labels(&mut new, source, &self.values, &LoadOptions::default(), control)?;
        let create = match &self.partitions {
            None => self.kind.create(&self.table, &new, source.schema(), None),
            Some(partitions) => {
                self.check_partitions(source)?;
                let names = partitions.names(&self.table);
                partitions.create(&self.kind, &self.table, &names, |_| true, &new, source.schema())
            }
        };
        let added = self.add_loaded_at(&self.table).into_iter().chain(versions);
        Ok(std::iter::once(create).chain(added).chain(self.kind.complete(&self.table)).collect())
    }
}

impl Route {
    /// Takes the route of an earlier run of the same load, where the choice is free: with another number of
    /// connections this run might choose the other one.
    pub(crate) fn keep_to_earlier(
        &mut self,
        postgres: &Postgres,
        records: &Records<'_>,
        id_of: &dyn Fn(bool) -> String,
    ) -> Result<()> {
        if postgres.strategy != Strategy::Auto || postgres.partitions.is_none() {
            return Ok(());
        }
        let allowed = self.staged || postgres.refuses_staged().is_none();
        if !allowed || !records.exist()? {
            return Ok(());
        }
        let known = |staged: bool| records.find(&id_of(staged));
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
