//! Mode history: each change of a row becomes a version, which says from when and until when it was current (a slowly
//! changing dimension of type 2).

use sawmill_loader::{TableName, quote};
use sawmill_pgcopy::Column;
use sawmill_profile::format_counted;
use sawmill_source::{DELETES, Error, Kind, Result, Source};

use crate::table::catalogue::Link;
use crate::table::columns::TableColumn;
use crate::target::Postgres;
use crate::write::refusals::LEAVE_OUT;
use crate::write::upsert::{Matching, Merge, OVERRIDING, inserted};

/// The columns of a version: since when it is current, until when (null as long as it is), whether it is.
const COLUMNS: [(&str, &str); 3] = [
    ("valid_from", "timestamptz NOT NULL DEFAULT now()"),
    ("valid_to", "timestamptz"),
    ("current", "boolean NOT NULL DEFAULT true"),
];

/// Creates the empty table of versions.
///
/// # Errors
/// As [`Postgres::ddl`]; the server refuses a statement.
pub(crate) fn create_table(
    postgres: &Postgres,
    source: &dyn Source,
    table: &TableName,
    link: Link<'_>,
) -> Result<()> {
    let statements = postgres.clone().of_table(table.clone()).statements(source, link.control)?;
    link.begin()?;
    link.batch(&statements.join(";\n"))?;
    link.commit()
}

impl Postgres {
    /// The statements that add to a new table the columns of versions, and an index that allows one current version of each
    /// key; none in other modes.
    ///
    /// # Errors
    /// The source has a column of a version.
    pub(crate) fn add_versions(&self, source: &dyn Source) -> Result<Vec<String>> {
        if !self.on_conflict.is_history() {
            return Ok(Vec::new());
        }
        check_source(source.schema().fields().iter().map(|field| field.name().as_str()), &self.table)?;
        let quoted = self.table.quoted();
        let added = COLUMNS.map(|(name, kind)| format!("ADD COLUMN {} {kind}", quote(name))).join(", ");
        let key = self.matching().listed();
        let index = format!("CREATE UNIQUE INDEX ON {quoted} ({key}) WHERE {}", quote("current"));
        Ok(vec![format!("ALTER TABLE {quoted} {added}"), index])
    }
}

/// Refuses a source with a column that the server fills.
fn check_source<'a>(names: impl Iterator<Item = &'a str>, table: &TableName) -> Result<()> {
    let mut names = names;
    match names.find(|name| COLUMNS.iter().any(|(column, _)| column == name)) {
        None => Ok(()),
        Some(name) => {
            let what = format!("the source has a column {name:?}, which mode history fills in the table");
            Err(Error::new(Kind::Schema, what)
                .at(format!("table {table}"))
                .advise("rename the source's column (--rename), or name the others (--columns)"))
        }
    }
}

/// Checks, before a row is sent, that the source has the key's columns and the table the columns of a version.
pub(crate) fn check(
    Matching { key, on_conflict, .. }: Matching<'_>,
    columns: &[Column],
    existing: &[TableColumn],
    table: &TableName,
) -> Result<()> {
    check_source(columns.iter().map(|column| column.name.as_str()), table)?;
    let refused = |what: String, advice: &str| {
        Err(Error::new(Kind::Schema, what).at(format!("table {table}")).advise(advice))
    };
    if key.is_empty() {
        return refused(
            "mode history needs a key".to_owned(),
            "name the columns that identify a row with --key",
        );
    }
    if let Some(missing) = key.iter().find(|name| columns.iter().all(|column| column.name != **name)) {
        let what = format!("the source has no column {missing:?}, which is part of the key");
        return refused(what, "rename the source's column (--rename), or choose another key");
    }
    on_conflict.check_newest(columns, format!("table {table}"))?;
    for (name, kind) in COLUMNS {
        let wanted = kind.split(' ').next().unwrap_or(kind);
        let there = existing.iter().find(|column| column.name == name);
        let fits = |column: &TableColumn| match wanted {
            "boolean" => column.type_name == "boolean",
            _ => column.type_name.starts_with("timestamp") && column.type_name.ends_with("with time zone"),
        };
        if !there.is_some_and(fits) {
            let what = format!("the table has no column {name:?} of type {wanted}, which mode history needs");
            return refused(what, "let the load create the table, or add the column");
        }
    }
    Ok(())
}

impl Merge<'_> {
    /// Locks the table against other loads: two at once would both add a version.
    pub(super) fn lock(&self) -> Result<()> {
        self.link.batch(&format!("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE", self.table.quoted()))
    }

    /// Takes gathered rows out that are not newer than the current versions of their keys; of marked ones those that are
    /// older.
    pub(super) fn leave_out_older(&self, newest: &str) -> Result<()> {
        let (into, from, newest) = (self.table.quoted(), self.gathered.quoted(), quote(newest));
        self.lock()?;
        let not_newer = format!("(w.{newest} IS NULL OR t.{newest} >= w.{newest})");
        let left_out = match self.matching.deletes {
            true => format!(
                "CASE WHEN w.{} THEN t.{newest} IS NOT NULL AND (w.{newest} IS NULL OR t.{newest} > w.{newest}) \
                 ELSE {not_newer} END",
                quote(DELETES)
            ),
            false => not_newer,
        };
        let same_key = self.matching.same_key();
        let delete =
            format!("DELETE FROM {from} w USING {into} t WHERE t.\"current\" AND {same_key} AND {left_out}");
        self.link.execute(&delete, &[]).map(drop)
    }

    /// Closes the current versions whose gathered rows have other values, and adds those rows and rows with new keys as
    /// current versions. Rows that equal the current version leave it alone. Returns the numbers of added and of closed
    /// versions.
    ///
    /// # Errors
    /// Two rows of the source have the same key, or one has a null in it; errors of the server.
    pub(super) fn add_versions(&self) -> Result<(u64, u64)> {
        let Self { link, gathered, table, columns, matching, .. } = *self;
        let (into, from, listed) = (table.quoted(), gathered.quoted(), matching.listed());
        let null = matching.each(|name| format!("{name} IS NULL"), " OR ");
        let nulls: i64 = link.value(&format!("SELECT count(*) FROM {from} WHERE {null}"), &[])?;
        let wrong = match (nulls, self.doubled("true")?) {
            (0, None) => None,
            (0, Some(twice)) => Some((
                format!("rows of the source have the same key ({listed}): {twice}"),
                "name the column that says which is the newest (--newest)",
            )),
            (nulls, _) => {
                let rows = format_counted(nulls as u64, "row");
                Some((format!("{rows} of the source with a null in the key ({listed})"), LEAVE_OUT))
            }
        };
        if let Some((what, otherwise)) = wrong {
            let advice = format!(
                "correct the files, so that a key identifies one row, and run the same command again; or forget the load \
                 (sawmill load forget), and {otherwise}"
            );
            return Err(Error::new(Kind::Value, what).at(self.place()).advise(advice));
        }
        self.lock()?;
        let same_key = matching.same_key();
        let close = format!(
            "UPDATE {into} t SET valid_to = now(), \"current\" = false FROM {from} w \
             WHERE t.\"current\" AND {same_key} AND NOT {}",
            self.is_same_version()
        );
        let closed = link.execute(&close, &[])?;
        // The time since when a version is current may be the column with the time of the load.
        let is_of_version = |name: &&str| COLUMNS.iter().any(|(column, _)| column == name);
        let (names, values) = inserted(columns, matching.loaded_at.filter(|name| !is_of_version(name)));
        let add = format!(
            "INSERT INTO {into} ({names}, valid_from, valid_to, \"current\") {OVERRIDING} \
             SELECT {values}, now(), NULL, true FROM {from} w \
             WHERE NOT EXISTS (SELECT FROM {into} t WHERE t.\"current\" AND {same_key})"
        );
        Ok((link.execute(&add, &[])?, closed))
    }

    /// Whether the row `t` of the table has the values of the gathered row `w`, whichever file brought them.
    pub(super) fn is_same_version(&self) -> String {
        equal(self.columns.iter().filter(|column| !self.matching.lineage.contains(&column.name)))
    }
}

impl Matching<'_> {
    /// The clause that selects the first gathered row that cannot be a version: its key has a null, or equals that of an
    /// earlier row.
    pub(crate) fn first_unclear(self, gathered: &TableName) -> String {
        let null = self.each(|name| name + " IS NULL", " OR ");
        format!(
            "WHERE ctid = (SELECT place FROM (SELECT ctid AS place, {null} AS lacks, \
               row_number() OVER (PARTITION BY {} ORDER BY ctid) AS number FROM {}) w \
             WHERE lacks OR number > 1 ORDER BY lacks DESC, place LIMIT 1)",
            self.listed(),
            gathered.quoted()
        )
    }
}

/// Whether the row `t` of the table has the values of the gathered row `w` in these columns, byte by byte.
pub(super) fn equal<'c>(columns: impl Iterator<Item = &'c Column>) -> String {
    let names: Vec<String> = columns.map(|column| quote(&column.name)).collect();
    let row = |of: &str| names.iter().map(|name| format!("{of}.{name}")).collect::<Vec<_>>().join(", ");
    format!("pg_catalog.record_image_eq(ROW({}), ROW({}))", row("t"), row("w"))
}
