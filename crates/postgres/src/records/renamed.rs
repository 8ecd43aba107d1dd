//! Records of tables that were renamed or moved to another schema since: a table keeps its OID, and its
//! records follow it.
//!
//! An OID identifies a table only within one database: a restored dump may give it to another table. So a
//! load also records its database, and only there its records follow the OID ([`Records::database`]).

use sawmill_loader::TableName;
use sawmill_pgwire::KnownServer;
use sawmill_source::{Error, Kind, Result};

use crate::records::checkpoint::Records;
use crate::records::commands::RECORDED_NAME;

/// A load into a table that had another name then.
pub(crate) struct RenamedLoad {
    pub id: String,
    /// The name that the table had.
    pub was: TableName,
    /// The name that it has.
    pub now: TableName,
    pub mode: String,
    pub files: Vec<String>,
}

impl Records<'_> {
    /// Identifies the database by its tables of records; `None` if this user may not ask the server for its
    /// identity. A restored dump, here or elsewhere, has another identity.
    pub(crate) fn database(&self, server: &KnownServer) -> Result<Option<String>> {
        let Some(system) = server.system() else { return Ok(None) };
        let sql = "SELECT concat_ws(' ', $1::text, oid, to_regclass($2)::oid) FROM pg_catalog.pg_database \
                   WHERE datname = current_database()";
        self.link.value(sql, &[&system, &self.table("loads")])
    }

    /// Removes the OIDs from records that were restored from a dump of another database: here these OIDs
    /// belong to other tables. A table with both the OID and the name of a record is the same one, after
    /// `pg_upgrade` for example.
    pub(crate) fn drop_foreign_oids(&self, database: &str) -> Result<()> {
        let sql = format!(
            "UPDATE {} SET table_oid = 0, database = $1 WHERE database <> $1 AND NOT EXISTS (\
               SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
               WHERE c.oid = table_oid::oid AND target = {RECORDED_NAME})",
            self.table("loads")
        );
        self.link.execute(&sql, &[&database]).map(drop)
    }

    /// The loads into the table with this OID when it had another name, and those whose ID is `id` into a table that
    /// has another name now.
    pub(crate) fn renamed(&self, database: &str, oid: u32, id: &str) -> Result<Vec<RenamedLoad>> {
        let sql = format!(
            "SELECT l.load_id, l.target, n.nspname::text, c.relname::text, l.mode, l.files FROM {} l \
             JOIN pg_catalog.pg_class c ON c.oid = l.table_oid::oid \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE l.database = $1 AND (l.table_oid = $2 OR l.load_id = $3) \
             AND l.target <> {RECORDED_NAME} AND strpos(l.load_id, '/') = 0 \
             AND (l.completed IS NOT NULL OR l.mode IN ('append', 'truncate'))",
            self.table("loads")
        );
        let loads = self.link.rows(&sql, &[&database, &i64::from(oid), &id])?.into_iter();
        let load = |(id, was, schema, name, mode, files): (_, String, String, String, _, _)| {
            // The record has the name in displayed form.
            let was = was.parse().or_else(|_| TableName::new(None, &was))?;
            Ok(RenamedLoad { id, was, now: TableName::new(Some(&schema), &name)?, mode, files })
        };
        loads.map(load).collect()
    }

    /// Gives a load of a renamed table the ID `now`, and the table's name. The records of another table that have this
    /// ID are kept under another one.
    pub(crate) fn follow(&self, load: &RenamedLoad, now: &str) -> Result<()> {
        self.link.begin()?;
        for id in [load.id.as_str(), now] {
            if !self.wait_to_lock(id)? {
                return Err(Error::new(Kind::Busy, "a load into the table, which was renamed, is running")
                    .at(format!("table {}, {}", load.now, self.link.place()))
                    .advise("wait until it ends, or stop it; then run the same command again"));
            }
        }
        if now != load.id {
            if self.find(now)?.is_some() {
                self.keep_under_another_id(now)?;
            }
            self.move_to(&load.id, now)?;
        }
        self.set(now, "target", &load.now.to_string())?;
        self.link.commit()
    }

    /// Gives all records of renamed tables the names that the tables have.
    pub(crate) fn follow_names(&self, database: &str) -> Result<()> {
        let sql = format!(
            "UPDATE {} l SET target = {RECORDED_NAME} FROM pg_catalog.pg_class c \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.oid = l.table_oid::oid AND l.database = $1 AND strpos(l.load_id, '/') = 0 \
             AND (l.completed IS NOT NULL OR l.mode IN ('append', 'truncate')) \
             AND l.target <> {RECORDED_NAME}",
            self.table("loads")
        );
        self.link.execute(&sql, &[&database]).map(drop)
    }
}
