//! Rows of a staging table, merged into the table by their key.

use sawmill_loader::{TableName, quote};
use sawmill_pgcopy::Column;
use sawmill_profile::format_counted;
use sawmill_source::{DELETES, Error, Kind, LineageColumns, Result};

use crate::table::catalogue::Link;
use crate::table::columns::list;
use crate::write::deletes::Deleted;
use crate::write::history;

/// The effect of an upsert on a row whose key the table has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// The columns of the source get the row's values.
    #[default]
    Update,
    /// The row of the table stays. If several rows of the source share a key, one of them stays: over one connection the
    /// first, otherwise it is not defined which.
    Keep,
    /// The row with the greater value in this column stays, also among rows of the source. If both are equal, the row of
    /// the table stays, and of rows of the source one, as with [`Keep`](Self::Keep); null is the least.
    KeepNewest(String),
    /// The row of the table becomes an earlier version, unless its values are the same; the new row becomes the current
    /// one. The load creates the table where it is missing. With a column, a row counts only if its value there is
    /// greater than in the current version and in other rows of its key.
    History(Option<String>),
    /// All rows of the source's files, whose names are in this column, give way to the new ones.
    ReplaceFiles(String),
}

impl OnConflict {
    /// The column that says which row of a key is the newest.
    pub(crate) fn newest(&self) -> Option<&String> {
        match self {
            Self::KeepNewest(column) => Some(column),
            Self::History(column) => column.as_ref(),
            Self::Update | Self::Keep | Self::ReplaceFiles(_) => None,
        }
    }

    pub(crate) fn is_history(&self) -> bool {
        matches!(self, Self::History(_))
    }

    /// Checks that the source has the column that says which row is the newest.
    pub(crate) fn check_newest(&self, columns: &[Column], place: String) -> Result<()> {
        match self.newest().filter(|newest| columns.iter().all(|column| column.name != **newest)) {
            None => Ok(()),
            Some(newest) => {
                let what = format!("the source has no column {newest:?}, which says which row is the newest");
                let advice = "rename the source's column (--rename), or choose another one";
                Err(Error::new(Kind::Schema, what).at(place).advise(advice))
            }
        }
    }
}

/// Lets INSERT write columns that are GENERATED ALWAYS AS IDENTITY, as COPY does.
pub(crate) const OVERRIDING: &str = "OVERRIDING SYSTEM VALUE";

/// How rows are matched with the table's.
#[derive(Clone, Copy)]
pub(crate) struct Matching<'a> {
    pub key: &'a [String],
    pub on_conflict: &'a OnConflict,
    /// Whether marked rows delete.
    pub deletes: bool,
    /// Columns of which a value does not make another version.
    pub lineage: &'a LineageColumns,
    /// The column with the time of the load, which a merge writes: no default of the table comes before it.
    pub loaded_at: Option<&'a str>,
}

impl Matching<'_> {
    /// The columns of the key, quoted, of each of which `of` makes SQL.
    pub(crate) fn each(self, of: impl Fn(String) -> String, between: &str) -> String {
        self.key.iter().map(|name| of(quote(name))).collect::<Vec<_>>().join(between)
    }

    /// The columns of the key, for SQL.
    pub(crate) fn listed(self) -> String {
        self.each(|name| name, ", ")
    }

    /// The condition that the row `t` of the table has the key of the gathered row `w`.
    pub(crate) fn same_key(self) -> String {
        self.each(|name| format!("t.{name} = w.{name}"), " AND ")
    }
}

/// The columns that a merge inserts, and their values in a row of the staging table: those of the source, and the time of
/// the load.
pub(crate) fn inserted(columns: &[Column], loaded_at: Option<&str>) -> (String, String) {
    let names = list(columns);
    match loaded_at {
        Some(name) => (format!("{names}, {}", quote(name)), format!("{names}, pg_catalog.now()")),
        None => (names.clone(), names),
    }
}

/// Checks, before a row is sent, that the source has the key's columns and that the table has a unique index
/// on exactly these, without which the server cannot match rows.
pub(crate) fn check_key(
    link: Link<'_>,
    Matching { key, on_conflict, .. }: Matching<'_>,
    columns: &[Column],
    oid: u32,
    table: &TableName,
) -> Result<()> {
    let refused =
        |what: String| Error::new(Kind::Schema, what).at(format!("table {table}, {}", link.place()));
    if key.is_empty() {
        return Err(refused("an upsert needs a key".to_owned())
            .advise("name the columns of the table's primary key or of another unique key with --key"));
    }
    let lacks = |name: &String| !columns.iter().any(|column| column.name == *name);
    if let Some(missing) = key.iter().find(|name| lacks(name)) {
        return Err(refused(format!("the source has no column {missing:?}, which is part of the key"))
            .advise("rename the source's column (--rename), or choose another key"));
    }
    on_conflict.check_newest(columns, format!("table {table}, {}", link.place()))?;
    // Partial, deferrable, unfinished and expression indexes do not resolve conflicts, nor does WITHOUT
    // OVERLAPS (version 18).
    let sql = "SELECT array(SELECT a.attname::text FROM pg_catalog.pg_attribute a \
                 WHERE a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]) \
                 ORDER BY a.attname::text) \
               FROM pg_catalog.pg_index i \
               WHERE i.indrelid = $1 AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL \
               AND i.indexprs IS NULL AND NOT i.indisexclusion";
    let mut wanted = key.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    let mut there = Vec::new();
    for mut names in link.list::<Vec<String>>(sql, &[&oid])? {
        names.sort_unstable();
        if names == wanted {
            return Ok(());
        }
        there.push(names.join(", "));
    }
    let advice = match there.is_empty() {
        true => format!("add one that is not deferrable: PRIMARY KEY ({})", key.join(", ")),
        false => format!("its unique keys are {}", there.join("; ")),
    };
    Err(refused(format!("the table has no unique key on exactly {} that can find rows", key.join(", ")))
        .advise(advice))
}

/// The result of a merge.
pub(crate) struct Merged {
    /// Rows that the server inserted or updated.
    pub rows: u64,
    /// Versions that are no longer current.
    pub closed: u64,
    /// Rows with a null in the key, to which no key is equal.
    pub without_key: i64,
    /// Rows that a trigger or a rule skipped or changed. Only counted where a merge leaves rows of the table alone, so
    /// that the number of merged rows does not tell.
    pub skipped: i64,
    /// What marked rows did.
    pub deleted: Deleted,
}

/// A staging table whose rows are merged into the table, in the caller's transaction.
#[derive(Clone, Copy)]
pub(crate) struct Merge<'r> {
    pub link: Link<'r>,
    pub gathered: &'r TableName,
    pub table: &'r TableName,
    /// The columns of the source.
    pub columns: &'r [Column],
    pub matching: Matching<'r>,
    pub verify: bool,
}

impl Merge<'_> {
    pub(crate) fn place(&self) -> String {
        format!("table {}, {}", self.table, self.link.place())
    }

    /// Merges the rows, after marked ones have deleted theirs, and drops the staging table. With `verify` each row is then
    /// looked up in the table: a trigger or a rule may have changed or skipped it. Where the merge leaves rows of the
    /// table alone, this is done whenever the table has one.
    ///
    /// # Errors
    /// Errors of the server: two rows of the source with the same key, a violated constraint. With `verify`, rows
    /// that are not in the table after the merge.
    pub(crate) fn run(&self) -> Result<Merged> {
        let Self { link, gathered, table, matching, verify, .. } = *self;
        if let Some(newest) = matching.on_conflict.newest() {
            link.execute(&self.keep_newest(newest), &[])?;
            if matching.on_conflict.is_history() {
                self.leave_out_older(newest)?;
            }
        }
        // Of rows with one key the first is merged: a scan may not begin in the middle of the rows.
        link.batch("SET LOCAL synchronize_seqscans = off")?;
        let deleted = if matching.deletes { self.delete_marked()? } else { Deleted::default() };
        let columns = &matching.merged(self.columns)[..];
        let merge = Merge { columns, ..*self };
        let (rows, closed) = match matching.on_conflict {
            OnConflict::History(_) => merge.add_versions()?,
            _ => (link.execute(&merge.statement(), &[]).map_err(|error| self.same_key(error))?, 0),
        };
        let mut skipped = 0;
        if verify || may_leave(columns, matching) && has_triggers(link, table)? {
            let (count, first) = merge.missing()?;
            if verify && count > 0 {
                return Err(self.not_merged(count, &first.unwrap_or_default()));
            }
            skipped = count;
        }
        // Since version 15 nulls may be equal in an index.
        let without_key = format!(
            "SELECT count(*) FROM {} WHERE ({}) AND NOT EXISTS (SELECT FROM pg_catalog.pg_index i \
             WHERE i.indrelid = to_regclass($1) AND to_jsonb(i) ->> 'indnullsnotdistinct' = 'true')",
            gathered.quoted(),
            matching.each(|name| format!("{name} IS NULL"), " OR ")
        );
        let without_key = link.value(&without_key, &[&table.quoted()])?;
        link.batch(&format!("DROP TABLE {}", gathered.quoted()))?;
        Ok(Merged { rows, closed, without_key, skipped, deleted })
    }

    /// The statement that merges the rows.
    fn statement(&self) -> String {
        let Self { gathered, table, columns, matching, .. } = *self;
        let Matching { key, on_conflict, loaded_at, .. } = matching;
        let ((names, values), into, from) = (inserted(columns, loaded_at), table.quoted(), gathered.quoted());
        let updates = columns.iter().filter(|column| !key.contains(&column.name));
        let updates: Vec<&str> = updates.map(|column| column.name.as_str()).collect();
        let set = updates.iter().copied().chain(loaded_at);
        let set = set.map(|name| format!("{0} = EXCLUDED.{0}", quote(name)));
        let update = format!("UPDATE SET {}", set.collect::<Vec<_>>().join(", "));
        let action = match on_conflict {
            _ if updates.is_empty() => "NOTHING".to_owned(),
            OnConflict::Update => update,
            OnConflict::Keep | OnConflict::ReplaceFiles(_) | OnConflict::History(_) => "NOTHING".to_owned(),
            OnConflict::KeepNewest(newest) => {
                let newest = quote(newest);
                format!(
                    "{update} WHERE existing.{newest} IS NULL AND EXCLUDED.{newest} IS NOT NULL \
                     OR EXCLUDED.{newest} > existing.{newest}"
                )
            }
        };
        format!(
            "INSERT INTO {into} AS existing ({names}) {OVERRIDING} SELECT {values} FROM {from} \
             ON CONFLICT ({}) DO {action}",
            matching.listed()
        )
    }

    /// The statement that removes from the staging table all but the newest row of each key, since a statement updates a
    /// row once. Of equally new rows a marked one stays, or else the first. Rows with a null in the key equal none.
    fn keep_newest(&self, newest: &str) -> String {
        let (from, newest, matching) = (self.gathered.quoted(), quote(newest), self.matching);
        let mark = if matching.deletes { format!(", {} DESC", quote(DELETES)) } else { String::new() };
        format!(
            "DELETE FROM {from} w USING (SELECT ctid AS place, row_number() OVER (PARTITION BY {} \
               ORDER BY {newest} DESC NULLS LAST{mark}, ctid) AS number FROM {from} WHERE {}) ranked \
             WHERE w.ctid = ranked.place AND ranked.number > 1",
            matching.listed(),
            matching.each(|name| name + " IS NOT NULL", " AND ")
        )
    }

    /// The condition that the row `t`, which has the key of the gathered row `w`, is as the merge leaves it.
    fn as_wanted(&self) -> String {
        let Self { columns, matching, .. } = *self;
        match matching.on_conflict {
            OnConflict::Update => {
                let others = columns.iter().filter(|column| !matching.key.contains(&column.name));
                history::equal(others)
            }
            OnConflict::History(_) => format!("t.\"current\" AND {}", self.is_same_version()),
            // Files have no key, and are replaced elsewhere.
            OnConflict::Keep | OnConflict::ReplaceFiles(_) => "true".to_owned(),
            OnConflict::KeepNewest(newest) => {
                let newest = quote(newest);
                format!("(w.{newest} IS NULL OR t.{newest} >= w.{newest})")
            }
        }
    }

    /// Looks up each gathered row in the table: a row with an equal key that is as wanted. How many there are not, and the
    /// first key.
    ///
    /// The key need not have the same bytes: the server keeps the existing one, 'A' for 'a' of `citext`.
    fn missing(&self) -> Result<(i64, Option<String>)> {
        let Self { link, gathered, table, matching, .. } = *self;
        // Deferred triggers would change rows after the comparison.
        link.batch("SET CONSTRAINTS ALL IMMEDIATE")?;
        let is_null = |not: &str, between| matching.each(|name| format!("w.{name} IS {not}NULL"), between);
        let without = |equal: &str| {
            format!(
                "SELECT ROW({})::text AS key FROM {} w WHERE NOT EXISTS (SELECT FROM {} t WHERE {} AND {})",
                matching.each(|name| format!("w.{name}"), ", "),
                gathered.quoted(),
                table.quoted(),
                matching.each(|name| format!("t.{name} {equal} w.{name}"), " AND "),
                self.as_wanted(),
            )
        };
        // Two queries, since only `=` can use a hash join; keys with a null are rare.
        let sql = format!(
            "SELECT count(*), left(min(key), 200) FROM ({} AND {} UNION ALL {} AND ({})) missing",
            without("="),
            is_null("NOT ", " AND "),
            without("IS NOT DISTINCT FROM"),
            is_null("", " OR "),
        );
        Ok(link.first(&sql, &[])?.unwrap_or_default())
    }

    /// The error for rows that are not in the table after the merge.
    fn not_merged(&self, count: i64, first: &str) -> Error {
        let what = format!(
            "the merge left the table without {} of the source, or with other values in them; the first key is {first}",
            format_counted(count as u64, "row")
        );
        Error::new(Kind::Mismatch, what).at(self.place()).advise(
            "a trigger or a rule of the table changes or skips rows. Nothing was merged; a load without --verify merges them",
        )
    }

    /// The server's error of a merge. If two rows of the source have the same key, it names that key.
    fn same_key(&self, error: Error) -> Error {
        // cardinality_violation, whatever the server's language
        if !error.what().ends_with("[21000]") {
            return error;
        }
        // Of rows with one key the newest was kept, unless the key has a null.
        let with = match self.matching.on_conflict {
            OnConflict::KeepNewest(_) => self.matching.each(|name| format!("{name} IS NULL"), " OR "),
            _ => "true".to_owned(),
        };
        let twice = self.link.batch("ROLLBACK").and_then(|()| self.doubled(&with)).ok().flatten();
        // A trigger may also violate a cardinality.
        let Some(twice) = twice else { return error };
        let key = self.matching.listed();
        Error::new(error.kind(), format!("rows of the source have the same key ({key}): {twice}"))
            .at(format!("table {}, {}", self.table, error.place()))
            .advise(
                "correct the files, and run the same command again; or forget the load (sawmill load forget), and load files \
                 whose rows share keys one after the other",
            )
    }

    /// A key that several rows have, for which the aggregate `with` is true, as text, and their number.
    pub(crate) fn doubled(&self, with: &str) -> Result<Option<String>> {
        let (key, from) = (self.matching.listed(), self.gathered.quoted());
        let sql = format!(
            "SELECT left(ROW({key})::text, 200), count(*) FROM {from} GROUP BY {key} HAVING count(*) > 1 AND ({with}) \
             ORDER BY {key} LIMIT 1"
        );
        let found: Option<(String, i64)> = self.link.first(&sql, &[])?;
        Ok(found.map(|(key, count)| format!("{key} occurs {count} times")))
    }
}

/// Whether a merge leaves rows alone whose keys the table has.
pub(crate) fn may_leave(columns: &[Column], matching: Matching<'_>) -> bool {
    *matching.on_conflict != OnConflict::Update
        || matching.merged(columns).iter().all(|column| matching.key.contains(&column.name))
}

/// Whether a table may have fewer rows after a merge than were gathered: gathered rows may have shared a key, and triggers
/// or rules may skip rows.
pub(crate) fn may_merge_fewer(
    link: Link<'_>,
    table: &TableName,
    columns: &[Column],
    matching: Matching<'_>,
) -> Result<bool> {
    let share_keys = *matching.on_conflict != OnConflict::History(None) && may_leave(columns, matching);
    Ok(share_keys || has_triggers(link, table)?)
}

/// Whether triggers or rules of the table may skip or change rows.
fn has_triggers(link: Link<'_>, table: &TableName) -> Result<bool> {
    let sql = "SELECT relhasrules OR EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal) \
               FROM pg_catalog.pg_class c WHERE c.oid = to_regclass($1)";
    link.value(sql, &[&table.quoted()])
}
