//! Where a connection's rows go: into the table that all connections share, or into its own part tables.
//!
//! A part table is created in the transaction that fills it, so no other session sees it before the commit.
//! Connections therefore do not compete for locks of the relation nor, with `wal_level = minimal`, for the
//! write-ahead log, and `COPY ... FREEZE` writes rows as vacuum would leave them
//! (<https://www.postgresql.org/docs/current/sql-copy.html>). `FREEZE` requires that the table was created in
//! the subtransaction that copies, so rows behind savepoints go in without it.

use std::sync::Arc;

use sawmill_loader::TableName;
use sawmill_source::{Error, Kind, Result, Unit};
use tokio_postgres::Statement;

use crate::partition::survey::Partitions;
use crate::table::catalogue::{Link, find};
use crate::table::part_tables::Numbers;
use crate::write::plan::WriterPlan;
use crate::write::unit_group::UnitGroup;

/// How the part tables of a load are created and filled.
pub(crate) struct PartPlan {
    /// The table whose partitions the parts become.
    pub parent: TableName,
    /// The OID of the table that they will be attached to.
    pub parent_oid: u32,
    /// The columns' names for SQL.
    pub columns: String,
    /// `CREATE TABLE` of a part.
    pub create: Box<dyn Fn(&TableName) -> String + Send + Sync>,
    /// The partitions that parts become: each part gets all rows of one.
    pub partitions: Arc<Partitions>,
    /// The parts' numbers.
    pub numbers: Numbers,
}

/// Where a connection's rows go.
pub(crate) enum Destination {
    /// The table that all connections share, by this COPY.
    Shared(Statement),
    /// Part tables of the connection's own, one after the other.
    Parts(Arc<PartPlan>),
}

/// The table that a transaction copies into.
pub(crate) struct OpenTable {
    pub copy: Statement,
    /// The part table that the transaction has created, if any.
    pub part: Option<OpenPart>,
}

/// A part table that takes rows.
pub(crate) struct OpenPart {
    pub oid: u32,
    /// The partition that it becomes.
    pub partition: u32,
    /// The number of rows, rejected ones included, with which it is complete.
    complete: u64,
}

impl Destination {
    /// The partition of a unit, if connections fill part tables.
    pub(crate) fn partition_of(&self, unit: &Unit) -> Option<u32> {
        let Self::Parts(plan) = self else { return None };
        plan.partitions.share_of(unit.key).map(|share| share.partition)
    }

    /// Begins a transaction that copies rows, into a part table if they belong to a `partition`. With
    /// `savepoints` it copies behind savepoints. `lock` is the statement that takes the lock of writers.
    pub(crate) fn begin(
        &self,
        partition: Option<u32>,
        savepoints: bool,
        lock: &str,
        link: Link<'_>,
    ) -> Result<OpenTable> {
        // A deferred constraint would fail the commit, which does not say which row it was.
        // The snapshot of another isolation level is older than the lock that COPY waits for, so that the comparison
        // of the columns with the plan would miss what another session has changed until then.
        let constraints = if savepoints { "; SET CONSTRAINTS ALL IMMEDIATE" } else { "" };
        let begin = &format!("BEGIN ISOLATION LEVEL READ COMMITTED; {lock}{constraints}");
        match self {
            Self::Shared(copy) => {
                link.batch(begin)?;
                Ok(OpenTable { copy: copy.clone(), part: None })
            }
            Self::Parts(plan) => {
                let format = if savepoints { "FORMAT binary" } else { "FORMAT binary, FREEZE" };
                let partition = partition.ok_or_else(|| {
                    Error::new(Kind::Changed, "a unit belongs to no partition of the table")
                        .at(format!("table {}, {}", plan.parent, link.place()))
                        .advise("forget the load (sawmill load forget) and start it from the beginning")
                })?;
                plan.begin(partition, begin, format, link)
            }
        }
    }
}

impl PartPlan {
    /// Begins a transaction that creates and fills a part table.
    fn begin(&self, partition: u32, begin: &str, format: &str, link: Link<'_>) -> Result<OpenTable> {
        let name = self.parent.part(self.numbers.next());
        let (create, check) =
            ((self.create)(&name), self.partitions.add_check(&name, partition, self.parent_oid));
        let complete = self.partitions.rows_of(partition).unwrap_or(0);
        link.batch(&format!("{begin}; {create}; {check}"))?;
        let Some(found) = find(link, &name)? else {
            return Err(Error::new(Kind::Server, "the table that was just created is missing")
                .at(format!("table {name}, {}", link.place())));
        };
        let copy = format!("COPY {} ({}) FROM STDIN ({format})", name.quoted(), self.columns);
        let copy = link.prepare(&copy)?;
        Ok(OpenTable { copy, part: Some(OpenPart { oid: found.oid, partition, complete }) })
    }
}

impl OpenTable {
    /// The partition that the table becomes.
    pub(crate) fn partition(&self) -> Option<u32> {
        self.part.as_ref().map(|part| part.partition)
    }

    /// Whether it is time to commit the transaction.
    pub(crate) fn is_full(&self, group: &UnitGroup, plan: &WriterPlan) -> bool {
        match &self.part {
            Some(part) => group.planned_rows() >= part.complete,
            None => group.is_full(plan.unit_rows),
        }
    }

    /// Whether the transaction may be committed: a partition only with all of its rows.
    pub(crate) fn is_whole(&self, group: &UnitGroup) -> bool {
        self.part.as_ref().is_none_or(|part| group.planned_rows() == part.complete)
    }
}
