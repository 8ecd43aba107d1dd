//! The rows of corrected files replace the files' earlier rows, in one transaction.

use sawmill_loader::{ContentSum, LoadRecord, Mode, REPLACED, TableName, Tally, literal, quote};
use sawmill_pgcopy::Column;
use sawmill_source::{Error, Kind, Mapping, Result};

use crate::encode::canonical_row::CanonicalRow;
use crate::records::checkpoint::{Checkpoints, Records, UNITS, UNITS_UNLOGGED, signed};
use crate::table::catalogue::Link;
use crate::table::columns::list;
use crate::table::planned_columns::PlannedColumns;
use crate::types::sent_as_text::selected;
use crate::verify::sums::read_rows;
use crate::verify::tuples::Tuples;
use crate::write::upsert::{OVERRIDING, inserted};

/// A staging table with the rows of corrected files.
pub(crate) struct ReplacedFiles<'r> {
    pub gathered: &'r TableName,
    pub table: &'r TableName,
    pub columns: &'r [Column],
    /// The column with the time of the load.
    pub loaded_at: Option<&'r str>,
    /// The column with the names of files.
    pub column: &'r str,
    pub names: &'r [String],
    pub checkpoints: &'r Checkpoints,
    pub record: &'r LoadRecord,
    /// The mapping by which later appends recognise the load.
    pub mapping: &'r Mapping,
}

impl ReplacedFiles<'_> {
    /// The first gathered row whose key, by a unique index of the table, a row of another file has, or an earlier gathered
    /// one.
    ///
    /// # Errors
    /// No connection.
    pub(crate) fn same_key(&self, link: Link<'_>) -> Result<Option<(String, String)>> {
        let (table, gathered, column) = (self.table.quoted(), self.gathered.quoted(), quote(self.column));
        let indexes = "SELECT array(SELECT a.attname::text FROM pg_catalog.pg_attribute a WHERE a.attrelid = i.indrelid \
                         AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]) ORDER BY a.attnum) \
                       FROM pg_catalog.pg_index i WHERE i.indrelid = $1 AND i.indisunique AND i.indpred IS NULL \
                       AND i.indexprs IS NULL ORDER BY i.indexrelid";
        for key in link.list::<Vec<String>>(indexes, &[&self.record.table_oid])? {
            if !key.iter().all(|name| self.columns.iter().any(|column| column.name == *name)) {
                continue;
            }
            let each = |of: &dyn Fn(String) -> String, between: &str| {
                key.iter().map(|name| of(quote(name))).collect::<Vec<_>>().join(between)
            };
            let equal = each(&|name| format!("t.{name} = g.{name}"), " AND ");
            let text = format!("left(ROW({})::text, 200)", each(&|name| format!("g.{name}"), ", "));
            let sql = format!(
                "(SELECT g.ctid::text, {text}, t.{column}::text FROM {gathered} g JOIN {table} t ON {equal} \
                   WHERE (t.{column}::text = ANY ($1)) IS NOT TRUE ORDER BY g.ctid LIMIT 1) \
                 UNION ALL (SELECT g.ctid::text, {text}, g.{column}::text FROM {gathered} g \
                   WHERE EXISTS (SELECT FROM {gathered} t WHERE {equal} AND t.ctid < g.ctid) ORDER BY g.ctid LIMIT 1)"
            );
            let found: Option<(String, String, Option<String>)> = link.first(&sql, &[&self.names])?;
            if let Some((place, value, other)) = found {
                let other = other.unwrap_or_else(|| "another origin".to_owned());
                let (clause, key) = (format!("WHERE ctid = '{place}'"), key.join(", "));
                let what = format!("a row of {other} has the same key ({key}), {value}");
                return Ok(Some((clause, what)));
            }
        }
        Ok(None)
    }

    /// Deletes the files' earlier rows, adds the rows of the staging table, and drops it, in the caller's
    /// transaction. Earlier loads then no longer hold the files, and this one is an append.
    ///
    /// # Errors
    /// Errors of the server; a trigger or a rule that skips rows, or with `verify` changes them.
    pub(crate) fn replace(&self, total: &Tally, verify: bool, link: Link<'_>) -> Result<u64> {
        let (table, gathered, column) = (self.table.quoted(), self.gathered.quoted(), quote(self.column));
        self.take_from_loads_in_order(link)?;
        let delete = format!("DELETE FROM {table} WHERE {column} = ANY ($1)");
        let deleted = link.execute(&delete, &[&self.names])?;
        let (names, values) = inserted(self.columns, self.loaded_at);
        let insert = format!("INSERT INTO {table} ({names}) {OVERRIDING} SELECT {values} FROM {gathered}");
        let inserted = link.execute(&insert, &[])?;
        if inserted != total.rows {
            let what = format!(
                "{inserted} of {} rows were added: a trigger or a rule skipped the others",
                total.rows
            );
            return Err(self.refused(&what, link));
        }
        if verify {
            self.compare(&list(self.columns), link)?;
        }
        self.take_over(link)?;
        link.batch(&format!("DROP TABLE {gathered}"))?;
        Ok(deleted)
    }

    /// Compares the files' rows in the table with those that were gathered, and these were compared with the files.
    fn compare(&self, names: &str, link: Link<'_>) -> Result<()> {
        link.batch("SET CONSTRAINTS ALL IMMEDIATE")?;
        let sum = |from: &str| {
            format!(
                "(SELECT ROW(count(*), sum(pg_catalog.hashtextextended(ROW({names})::text, 0)::numeric)) FROM {from})"
            )
        };
        let there = format!("{} WHERE {} = ANY ($1)", self.table.quoted(), quote(self.column));
        let sql = format!("SELECT {} IS NOT DISTINCT FROM {}", sum(&there), sum(&self.gathered.quoted()));
        match link.value(&sql, &[&self.names])? {
            true => Ok(()),
            false => Err(self.refused("a trigger or a rule of the table changes rows", link)),
        }
    }

    /// Takes the rows that will be deleted from the units of loads whose units have rows of several files.
    fn take_from_loads_in_order(&self, link: Link<'_>) -> Result<()> {
        let records = self.checkpoints.on(link);
        let loads = records.in_order_with(self.record, self.names)?;
        let Some(load) = loads.first() else { return Ok(()) };
        let names: Vec<String> = self.names.iter().map(|name| literal(name)).collect();
        let sql = format!(
            "COPY (SELECT {} FROM {} WHERE {} = ANY (ARRAY[{}])) TO STDOUT (FORMAT binary)",
            selected(self.columns),
            self.table.quoted(),
            quote(self.column),
            names.join(", ")
        );
        let width = self.columns.len();
        let mut tuples = Tuples::new(width, CanonicalRow::new(self.columns, false), false);
        link.connection.wait_for(link.control, read_rows(link.connection, &sql, &mut tuples))?;
        let mut deleted = tuples.into_sums().whole;
        // Rows of the files that other loads have added beside them.
        for of_others in records.units_of_files(self.record, self.names)? {
            deleted = without(&deleted, &of_others);
        }
        records.take_rows(&load.id, &deleted)
    }

    /// Takes the files from the records of earlier loads, and turns this load's record into an append.
    fn take_over(&self, link: Link<'_>) -> Result<()> {
        let (loads, oid, id) =
            (self.checkpoints.table("loads"), i64::from(self.record.table_oid), self.record.id.as_str());
        let mut tables = vec![self.checkpoints.table(UNITS), self.checkpoints.table(UNITS_UNLOGGED)];
        tables.extend(self.checkpoints.on(link).rejects_tables()?);
        for table in tables {
            let delete = format!(
                "DELETE FROM {table} u USING {loads} l WHERE u.load_id = l.load_id AND l.table_oid = $1 \
                 AND l.mode <> 'upsert' AND l.load_id <> $2 AND l.files[u.file + 1] = ANY ($3) \
                 AND NOT {IS_IN_ORDER}"
            );
            link.execute(&delete, &[&oid, &id, &self.names])?;
        }
        let length = REPLACED.len();
        let forget = format!(
            "UPDATE {loads} l SET \
               fingerprints = ARRAY(SELECT CASE WHEN name = ANY ($3) AND right(print, {length}) <> '{REPLACED}' \
                 THEN print || '{REPLACED}' ELSE print END \
                 FROM unnest(l.files, l.fingerprints) WITH ORDINALITY f(name, print, n) ORDER BY n), \
               stamps = ARRAY(SELECT CASE WHEN name = ANY ($3) THEN NULL ELSE stamp END \
                 FROM unnest(l.files, l.stamps) WITH ORDINALITY f(name, stamp, n) ORDER BY n) \
             WHERE l.table_oid = $1 AND l.mode <> 'upsert' AND l.load_id <> $2 AND l.files && $3"
        );
        link.execute(&forget, &[&oid, &id, &self.names])?;
        // An interrupted load all of whose rows are replaced has nothing left to do.
        let end = format!(
            "UPDATE {loads} l SET completed = now(), rows = 0, content_sum = '{}', non_null = '{{}}' \
             WHERE l.table_oid = $1 AND l.mode <> 'upsert' AND l.load_id <> $2 AND l.completed IS NULL AND l.files && $3 \
             AND NOT EXISTS (SELECT FROM unnest(l.fingerprints) print WHERE right(print, {length}) <> '{REPLACED}')",
            ContentSum::default()
        );
        link.execute(&end, &[&oid, &id, &self.names])?;
        let own = format!("UPDATE {loads} SET mode = $2, mapping = $3 WHERE load_id = $1");
        link.execute(&own, &[&id, &Mode::Append.name(), &self.mapping.to_text()])?;
        let names = self.columns.iter().map(|column| column.name.as_str());
        let planned = PlannedColumns::read(link, self.table, self.record.table_oid, names)?;
        self.checkpoints.on(link).set(id, "columns", &planned.recorded(self.columns))
    }

    fn refused(&self, what: &str, link: Link<'_>) -> Error {
        Error::new(Kind::Mismatch, what)
            .at(format!("table {}, {}", self.table, link.place()))
            .advise("nothing was replaced: change the trigger or the rule, and run the same command again")
    }
}

/// The condition that the units of a load `l` have rows of several files.
pub(crate) const IS_IN_ORDER: &str = "(strpos(coalesce(l.facts, ''), '\"order\":\"') > 0)";

/// The sum of rows without others, which may be of other columns.
pub(crate) fn without(rows: &Tally, others: &Tally) -> Tally {
    let of_others = others.non_null.iter().copied().chain(std::iter::repeat(0));
    Tally {
        rows: rows.rows.saturating_sub(others.rows),
        content_sum: rows.content_sum.minus(others.content_sum),
        non_null: rows.non_null.iter().zip(of_others).map(|(all, of)| all.saturating_sub(of)).collect(),
    }
}

impl Records<'_> {
    /// The loads into the table of `but`, except that one, whose rows are in order over all files and still contain rows of
    /// some of these.
    pub(crate) fn in_order_with(&self, but: &LoadRecord, names: &[String]) -> Result<Vec<LoadRecord>> {
        let condition = format!(
            "table_oid = $1 AND load_id <> $2 AND mode <> 'upsert' AND {IS_IN_ORDER} \
             AND EXISTS (SELECT FROM unnest(l.files, l.fingerprints) f(name, print) \
               WHERE name = ANY ($3) AND right(print, $4) <> $5) ORDER BY begun"
        );
        let length = REPLACED.len() as i32;
        self.loads(&condition, &[&i64::from(but.table_oid), &but.id, &names, &length, &REPLACED])
    }

    /// The units of the other loads into that table that have rows of these files alone.
    pub(crate) fn units_of_files(&self, but: &LoadRecord, names: &[String]) -> Result<Vec<Tally>> {
        let sql = format!(
            "SELECT u.rows, u.content_sum, u.non_null FROM {} u JOIN {} l USING (load_id) \
             WHERE l.table_oid = $1 AND l.load_id <> $2 AND l.mode <> 'upsert' \
             AND NOT {IS_IN_ORDER} AND l.files[u.file + 1] = ANY ($3)",
            self.all_units(),
            self.table("loads")
        );
        let rows = self.link.rows(&sql, &[&i64::from(but.table_oid), &but.id, &names])?;
        rows.into_iter().map(|unit| self.tally(unit)).collect()
    }

    /// Leaves a load one unit: the sum of those that it has, without these rows.
    pub(crate) fn take_rows(&self, id: &str, rows: &Tally) -> Result<()> {
        let mut there = Tally::default();
        self.units(id)?.values().for_each(|unit| there.add(unit));
        let left = without(&there, rows);
        for table in [UNITS, UNITS_UNLOGGED] {
            let delete = format!("DELETE FROM {} WHERE load_id = $1", self.table(table));
            self.link.execute(&delete, &[&id])?;
        }
        let insert = format!(
            "INSERT INTO {} (load_id, file, row_group, first_row, rows, content_sum, non_null) \
             VALUES ($1, 0, 0, 0, $2, $3, $4)",
            self.units_table()
        );
        let (count, sum) = (left.rows as i64, left.content_sum.to_string());
        self.link.execute(&insert, &[&id, &count, &sum, &signed(&left.non_null)]).map(drop)
    }
}
