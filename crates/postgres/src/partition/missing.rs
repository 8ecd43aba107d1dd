//! Partitions that an existing table lacks for the rows of a load. If a load made the table, they are created by the
//! rule that its bounds show; for other tables an error names them before a row is sent.

use std::collections::HashSet;

use sawmill_loader::{LoadOptions, TableName, quote};
use sawmill_pgcopy::PgType;
use sawmill_pgcopy::calendar::days_from_civil;
use sawmill_pgwire::Connection;
use sawmill_source::{Control, Error, Kind, Result, Source};

use crate::partition::by::{PartitionBy, Scheme};
use crate::partition::period::period_of;
use crate::partition::slot::{Rule, Slot};
use crate::partition::survey::{Partitions, WINDOW_ROWS};
use crate::records::checkpoint::{Checkpoints, Records, advisory_key};
use crate::table::blockers;
use crate::table::catalogue::{Link, find};
use crate::target::Postgres;

/// How a table is partitioned, according to the catalogue.
struct Layout {
    by: PartitionBy,
    rule: Rule,
    /// The column's position in the source.
    column: usize,
    /// Bounds without quotes: the server's notation of values differs from ours in them.
    bounds: HashSet<String>,
    not_null: bool,
    unlogged: bool,
}

/// A table whose partitions are compared with the rows of a source.
pub(crate) struct Lacking<'a> {
    pub postgres: &'a Postgres,
    pub source: &'a dyn Source,
    pub records: Records<'a>,
    pub table: &'a TableName,
    pub oid: u32,
}

/// A partition that the table lacks.
struct NewPartition {
    name: TableName,
    /// `FOR VALUES ...` or `DEFAULT`.
    bound: String,
    /// The statement that creates it.
    statement: String,
}

impl NewPartition {
    fn line(&self) -> String {
        format!("partition {} {}", self.name, self.bound)
    }
}

impl Lacking<'_> {
    /// Creates the partitions that the table lacks. Returns a line for each.
    ///
    /// # Errors
    /// The table, which no load made, lacks partitions, and rows are not rejected; or the source or the server fails.
    pub(crate) fn create(&self) -> Result<Vec<String>> {
        let link = self.records.link;
        let mut missing = self.find()?;
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        link.begin()?;
        // Another load may have created the same ones.
        let key = advisory_key(&format!("partitions of {}", self.oid));
        link.batch(&format!("SELECT pg_advisory_xact_lock({key})"))?;
        let (bounds, _) = self.bounds()?;
        missing.retain(|partition| bounds.iter().all(|bound| plain(bound) != plain(&partition.bound)));
        for NewPartition { statement, .. } in &missing {
            let create = || link.batch(statement);
            blockers::named(link, create).map_err(|error| match error.kind() {
                Kind::Server if error.advice().is_empty() => error
                    .at(self.place())
                    .advise(format!("create the partition, and run the same command again: {statement}")),
                _ => error,
            })?;
        }
        link.commit_durably()?;
        Ok(missing.iter().map(|partition| format!("creates {}", partition.line())).collect())
    }

    fn place(&self) -> String {
        format!("table {}, {}", self.table, self.records.link.place())
    }

    /// The partitions that the table lacks for rows of the source.
    fn find(&self) -> Result<Vec<NewPartition>> {
        let (postgres, source, control) = (self.postgres, self.source, self.records.link.control);
        if postgres.by_position || !source.facts().knows_rows || postgres.several.is_some() {
            return Ok(Vec::new());
        }
        let Some(layout) = self.layout()? else { return Ok(Vec::new()) };
        let is_owned = self.is_owned()?;
        // Rows without a partition go to the default one or are rejected, and marked ones delete.
        let takes_all = layout.bounds.contains("DEFAULT") || postgres.rejects.is_some();
        let needs_none = !is_owned && (takes_all || postgres.has_deletes());
        if needs_none || layout.has_all_of(source)? {
            return Ok(Vec::new());
        }
        let phase = control.phase().phase("partitions");
        let rule = (layout.column, layout.rule.clone());
        let surveyed = Partitions::counted(&layout.by, source, rule, Vec::new(), &control.in_phase(&phase));
        phase.finish();
        // The load rejects the row, or the server reads its value.
        let may_be_refused = postgres.rejects.is_some() || layout.rule.only_nulls;
        let partitions = match surveyed {
            Err(error) if may_be_refused && matches!(error.kind(), Kind::Value | Kind::Source) => {
                return Ok(Vec::new());
            }
            // More values than a load may create partitions for: the table may have theirs, and the server decides.
            Err(error) if error.kind() == Kind::Config => return Ok(Vec::new()),
            surveyed => surveyed?,
        };
        let missing = self.named(&layout, &partitions)?;
        if is_owned || missing.is_empty() {
            return Ok(missing);
        }
        let lines: Vec<String> = missing.iter().map(NewPartition::line).collect();
        let statements: Vec<&str> = missing.iter().map(|partition| partition.statement.as_str()).collect();
        let what = format!("the table has no partition for rows of the files: it lacks {}", lines.join(", "));
        let advice = format!("create it, and run the same command again: {}", statements.join("; "));
        Err(Error::new(Kind::Schema, what).at(self.place()).advise(advice))
    }

    /// Whether a load made the table, according to the records.
    fn is_owned(&self) -> Result<bool> {
        let loads = self.records.table("loads");
        if !self.records.link.value::<bool>("SELECT to_regclass($1) IS NOT NULL", &[&loads])? {
            return Ok(false);
        }
        let sql = format!(
            "SELECT EXISTS (SELECT FROM {loads} WHERE table_oid = $1 AND mode IN ('create', 'replace'))"
        );
        self.records.link.value(&sql, &[&i64::from(self.oid)])
    }

    /// `None` unless the table is partitioned by a column of the source in a way that a load could have chosen.
    fn layout(&self) -> Result<Option<Layout>> {
        let link = self.records.link;
        let sql = "SELECT p.partstrat::text, a.attname::text, a.attnotnull, a.atttypid, a.atttypmod, t.typtype = 'e' \
                   FROM pg_catalog.pg_partitioned_table p \
                   JOIN pg_catalog.pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0] \
                   JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
                   WHERE p.partrelid = $1 AND p.partnatts = 1";
        let found: Option<(String, String, bool, u32, i32, bool)> = link.first(sql, &[&self.oid])?;
        let Some((strategy, column, not_null, oid, modifier, is_enum)) = found else { return Ok(None) };
        // Without domains and extension types, which have their own notation.
        let of = if is_enum { Some(PgType::Enum) } else { PgType::of_catalogue(oid, modifier) };
        let Ok(at) = self.source.schema().index_of(&column) else { return Ok(None) };
        link.begin()?;
        let (bounds, unlogged) = self.bounds()?;
        link.commit()?;
        let schemes: &[Scheme] = match strategy.as_str() {
            "r" => &[Scheme::Year, Scheme::Month, Scheme::Day, Scheme::Hour],
            "l" => &[Scheme::List],
            _ => &[],
        };
        let field = self.source.schema().field(at);
        let values = &self.postgres.values;
        let of_source = |by: &PartitionBy| Rule::new(by, field, values).ok();
        let of_table = |by: &PartitionBy| Rule::of_nulls(by, of?, values);
        let fitting = |rule_of: &dyn Fn(&PartitionBy) -> Option<Rule>| {
            schemes.iter().find_map(|scheme| {
                let by = PartitionBy { scheme: *scheme, column: column.clone() };
                let fits =
                    |rule: &Rule| is_regular(*scheme, rule, &bounds) && rule.is_written_alike(of.as_ref());
                rule_of(&by).filter(fits).map(|rule| (by, rule))
            })
        };
        let found = fitting(&of_source).or_else(|| fitting(&of_table));
        Ok(found.map(|(by, rule)| {
            let bounds = bounds.iter().map(|bound| plain(bound)).collect();
            Layout { by, rule, column: at, bounds, not_null, unlogged }
        }))
    }

    /// The bounds of the partitions, with times in UTC, and whether all are unlogged. Runs in the caller's transaction,
    /// and sets its notation of times.
    fn bounds(&self) -> Result<(Vec<String>, bool)> {
        let link = self.records.link;
        link.batch("SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL timezone = 'UTC'")?;
        let sql = "SELECT pg_catalog.pg_get_expr(c.relpartbound, c.oid), c.relpersistence = 'u' \
                   FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid \
                   WHERE i.inhparent = $1 AND c.relpartbound IS NOT NULL";
        let (bounds, unlogged): (Vec<String>, Vec<bool>) =
            link.rows::<(String, bool)>(sql, &[&self.oid])?.into_iter().unzip();
        Ok((bounds, !unlogged.is_empty() && unlogged.iter().all(|unlogged| *unlogged)))
    }

    /// The partitions that the source needs and the table lacks, with names that are free.
    fn named(&self, layout: &Layout, partitions: &Partitions) -> Result<Vec<NewPartition>> {
        let mut missing = Vec::<NewPartition>::new();
        for slot in &partitions.slots {
            let is_refused = *slot == Slot::Null && layout.not_null;
            if layout.has(slot) || is_refused || self.is_in_default(layout, slot)? {
                continue;
            }
            let of_value = layout.rule.suffix(slot).map(|suffix| self.table.partition(&suffix));
            for name in of_value.into_iter().chain((1..).map(|number| self.table.numbered(number))) {
                let is_taken = missing.iter().any(|other| other.name == name)
                    || find(self.records.link, &name)?.is_some();
                if !is_taken {
                    missing.push(layout.new_partition(name, slot, self.table));
                    break;
                }
            }
        }
        Ok(missing)
    }

    /// Whether the default partition has rows of a slot already, so that no partition can be created for it.
    fn is_in_default(&self, layout: &Layout, slot: &Slot) -> Result<bool> {
        if !layout.bounds.contains("DEFAULT") {
            return Ok(false);
        }
        let check = layout.rule.check(slot, &quote(&layout.by.column), self.oid);
        let sql = format!("SELECT EXISTS (SELECT FROM {} WHERE {check})", self.table.quoted());
        self.records.link.value(&sql, &[])
    }
}

impl Layout {
    fn new_partition(&self, name: TableName, slot: &Slot, table: &TableName) -> NewPartition {
        let (unlogged, bound) = (if self.unlogged { "UNLOGGED " } else { "" }, self.rule.bound(slot));
        let statement =
            format!("CREATE {unlogged}TABLE {} PARTITION OF {} {bound}", name.quoted(), table.quoted());
        NewPartition { name, bound, statement }
    }

    /// Whether the table has the partition of a slot, or may have it in another notation.
    fn has(&self, slot: &Slot) -> bool {
        !self.rule.is_plain(slot) || self.bounds.contains(&plain(&self.rule.bound(slot)))
    }

    /// Whether statistics show that all rows of the source have a partition.
    fn has_all_of(&self, source: &dyn Source) -> Result<bool> {
        let mut of_file = None;
        for run in source.plan(WINDOW_ROWS) {
            let Some(first) = run.first() else { continue };
            if of_file.as_ref().is_none_or(|(file, _)| *file != first.key.file) {
                of_file = Some((first.key.file, source.known(first.key.file, self.column)?));
            }
            let known = of_file.as_ref().and_then(|(_, known)| known.get(first.key.row_group as usize));
            let has_all = known.is_some_and(|known| self.rule.lies_in(known, |slot| self.has(slot)));
            if !has_all {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether all partitions have bounds of a scheme. A default partition of a list takes all other values.
fn is_regular(scheme: Scheme, rule: &Rule, bounds: &[String]) -> bool {
    let mut others = bounds.iter().filter(|bound| *bound != "DEFAULT");
    match scheme {
        Scheme::List => others.clone().count() == bounds.len() && others.all(|bound| !bound.contains(", ")),
        _ => others.clone().next().is_some() && others.all(|bound| is_period(scheme, rule, bound)),
    }
}

/// Whether a bound is a period of a scheme.
fn is_period(scheme: Scheme, rule: &Rule, bound: &str) -> bool {
    let period = first_hour(bound).and_then(|hour| period_of(scheme, hour));
    period.is_some_and(|period| rule.bound(&Slot::Number(period.number.into())) == bound)
}

/// The hour at which a bound begins, counted from 1970: `FOR VALUES FROM ('2024-01-31 13:00:00') TO ...`.
fn first_hour(bound: &str) -> Option<i64> {
    let (day, time) = bound.split('\'').nth(1)?.split_at_checked(10)?;
    let mut parts = day.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let hour = time.get(1..3).map_or(Some(0), |hour| hour.parse().ok())?;
    Some(days_from_civil(year, month, day) * 24 + hour)
}

/// A bound without quotes: depending on the column's type, the server writes `IN (1)` or `IN ('1')`. The text NULL and
/// texts with quotes keep their quotes: without them the bound would be another value's.
fn plain(bound: &str) -> String {
    match bound == "FOR VALUES IN ('NULL')" || bound.contains("''") {
        true => bound.to_owned(),
        false => bound.replace('\'', ""),
    }
}

impl Postgres {
    /// The partitions that a load would create in its existing table, a line for each.
    ///
    /// # Errors
    /// A table that no load has made lacks partitions; no connection.
    pub fn planned_partitions(
        &self,
        source: &dyn Source,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<Vec<String>> {
        if self.mode.makes_the_table() {
            return Ok(Vec::new());
        }
        let new = self.new_files(source, options, control)?;
        let connection = Connection::open(&self.server, control)?;
        let link = Link::new(&connection, control);
        let Some(found) = find(link, &self.table)? else { return Ok(Vec::new()) };
        let (checkpoints, table) =
            (Checkpoints::new(&self.checkpoint_schema)?, self.table.within(&found.schema));
        let records = checkpoints.on(link);
        let lacking = Lacking { postgres: self, source: &new, records, table: &table, oid: found.oid };
        let missing = lacking.find()?;
        Ok(missing.iter().map(|partition| format!("creates {}", partition.line())).collect())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Array, NullArray, StringArray};
    use sawmill_pgcopy::ValueOptions;

    use super::*;
    use crate::partition::slot::Book;

    #[test]
    fn a_column_without_a_value_has_the_slot_of_null_whatever_its_type() {
        let by: PartitionBy = "month(at)".parse().unwrap();
        let rule = Rule::of_nulls(&by, PgType::TimestampTz, &ValueOptions::default()).unwrap();
        assert_eq!(rule.bound(&Slot::Null), "DEFAULT");
        let numbered = |column: &dyn Array| {
            let (mut book, mut numbers) = (Book::of_at_most(9), Vec::new());
            let found = rule.numbers(column, &mut book, &mut numbers);
            found.ok().map(|()| (book.slots.clone(), numbers))
        };
        assert_eq!(numbered(&StringArray::new_null(2)), Some((vec![Slot::Null], vec![0, 0])));
        assert_eq!(numbered(&NullArray::new(1)), Some((vec![Slot::Null], vec![0])));
        assert_eq!(numbered(&StringArray::from(vec![None, Some("2024-01-01")])), None);
    }

    #[test]
    fn bounds_begin_at_the_hour_that_the_server_writes() {
        let hours = |text: &str| first_hour(&format!("FOR VALUES FROM ('{text}') TO ('2024-02-01')"));
        assert_eq!(hours("1970-01-02"), Some(24));
        assert_eq!(hours("1970-01-01 13:00:00+00"), Some(13));
        assert_eq!(hours("0044-01-01 BC"), None);
        assert_eq!(first_hour("FOR VALUES FROM (MINVALUE) TO (10)"), None);
    }

    #[test]
    fn bounds_of_different_values_differ() {
        let bound = |value: &str| plain(&format!("FOR VALUES IN ({value})"));
        assert_eq!(bound("'1'"), bound("1"));
        assert_ne!(bound("'NULL'"), bound("NULL"));
        assert_ne!(bound("'it''s'"), bound("'its'"));
    }
}
