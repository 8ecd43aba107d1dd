//! The schema of the tables of records: created with the first load, dropped with the last record.
//!
//! An existing schema, with the permissions of its owner, is used unchanged and never dropped. A comment
//! marks schemas that were created here.

use sawmill_loader::quote;
use sawmill_source::{Error, Kind, Result};

use crate::records::checkpoint::{Records, UNITS, UNITS_UNLOGGED, advisory_key};
use crate::rejected::rejects::{REJECTS, REJECTS_UNLOGGED};

/// All tables that hold records.
const TABLES: [&str; 5] = ["loads", UNITS, UNITS_UNLOGGED, REJECTS, REJECTS_UNLOGGED];

/// The comment on a schema that was created for the records, and is dropped with the last of them.
const COMMENT: &str = "records of sawmill load";

impl Records<'_> {
    /// Whether the tables exist.
    pub(crate) fn exist(&self) -> Result<bool> {
        self.link.value(
            "SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL AND to_regclass($3) IS NOT NULL",
            &[&self.table("loads"), &self.table(UNITS), &self.table(UNITS_UNLOGGED)],
        )
    }

    /// Creates missing tables; several loads may do so at the same time.
    pub(crate) fn create(&self) -> Result<()> {
        if self.exist()? {
            return Ok(());
        }
        let loads = self.table("loads");
        let units = |table: &str, kind: &str| {
            format!(
                "CREATE {kind} TABLE IF NOT EXISTS {} (\
                   load_id text NOT NULL REFERENCES {loads} ON DELETE CASCADE, \
                   file integer NOT NULL, row_group integer NOT NULL, first_row bigint NOT NULL, \
                   rows bigint NOT NULL, content_sum text NOT NULL, non_null bigint[] NOT NULL, \
                   committed timestamptz NOT NULL DEFAULT now(), part_oid bigint, \
                   PRIMARY KEY (load_id, file, row_group, first_row))",
                self.table(table)
            )
        };
        let (units, unlogged) = (units(UNITS, ""), units(UNITS_UNLOGGED, "UNLOGGED"));
        self.link.begin()?;
        let lock = format!("SELECT pg_advisory_xact_lock({})", advisory_key(&self.schema));
        self.link.batch(&lock)?;
        self.create_schema()?;
        self.refuse_others()?;
        self.link.batch(&format!(
            "CREATE TABLE IF NOT EXISTS {loads} (\
                   load_id text PRIMARY KEY, target text NOT NULL, mode text NOT NULL, \
                   table_oid bigint NOT NULL, unit_rows bigint NOT NULL, \
                   files text[] NOT NULL, fingerprints text[] NOT NULL, \
                   begun timestamptz NOT NULL DEFAULT now(), completed timestamptz, \
                   rows bigint, content_sum text, non_null bigint[], \
                   before_rows bigint, before_sum text, before_non_null bigint[], \
                   stamps text[] NOT NULL, mapping text NOT NULL, table_file bigint, parts integer, \
                   keys_refused boolean, columns text[], database text, facts text); \
                 {units}; {unlogged}"
        ))?;
        self.link.commit()
    }

    /// Refuses a foreign table with one of the names.
    fn refuse_others(&self) -> Result<()> {
        let others = "SELECT c.relname::text FROM pg_catalog.pg_class c \
                      WHERE c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1) \
                      AND c.relname = ANY ($2) AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a \
                        WHERE a.attrelid = c.oid AND a.attname = 'load_id')";
        let others: Vec<String> = self.link.list(others, &[&self.schema, &TABLES.as_slice()])?;
        let Some(table) = others.first().map(|name| self.table(name)) else { return Ok(()) };
        Err(Error::new(Kind::Exists, format!("{table} already exists, and is not a table of load records"))
            .at(self.link.place())
            .advise("keep the records in another schema: --checkpoint-schema NAME"))
    }

    /// Creates the schema if it is missing. An existing one is used unchanged, which needs fewer permissions.
    fn create_schema(&self) -> Result<()> {
        let found = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1), \
                     pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')";
        let found: Option<(bool, bool)> = self.link.first(found, &[&self.schema])?;
        let schema = quote(&self.schema);
        match found.unwrap_or_default() {
            (true, _) => Ok(()),
            (false, true) => {
                self.link.batch(&format!("CREATE SCHEMA {schema}; COMMENT ON SCHEMA {schema} IS '{COMMENT}'"))
            }
            (false, false) => Err(Error::new(
                Kind::Server,
                format!("schema {schema} for the records of loads does not exist, and this user may not create it"),
            )
            .at(self.link.place())
            .advise(format!(
                "ask an administrator to run CREATE SCHEMA {schema} AUTHORIZATION with the user's name, or use \
                 --checkpoint-schema to name a schema in which the user may create tables"
            ))),
        }
    }

    /// Drops the tables if no load is recorded any more, and the schema if it was created for them and is
    /// otherwise empty. Objects of other users stay.
    pub(crate) fn drop_if_empty(&self) -> Result<()> {
        let owned = "SELECT coalesce(bool_and(pg_catalog.pg_has_role(relowner, 'USAGE')), false) FROM pg_catalog.pg_class \
                     WHERE relkind = 'r' AND relname = ANY ($2) \
                     AND relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1)";
        if !self.link.value::<bool>(owned, &[&self.schema, &TABLES.as_slice()])? {
            return Ok(());
        }
        let loads = self.table("loads");
        let units = format!("{}, {}", self.table(UNITS), self.table(UNITS_UNLOGGED));
        let key = advisory_key(&self.schema);
        self.link.batch(&format!("BEGIN; SELECT pg_advisory_xact_lock({key}); LOCK TABLE {loads}"))?;
        if self.link.value(&format!("SELECT EXISTS (SELECT FROM {loads})"), &[])? {
            return self.link.batch("COMMIT");
        }
        let rejects = format!("{}, {}", self.table(REJECTS), self.table(REJECTS_UNLOGGED));
        self.link.batch(&format!("DROP TABLE IF EXISTS {rejects}; DROP TABLE {units}, {loads}"))?;
        let removable = "SELECT pg_catalog.obj_description(oid, 'pg_namespace') = $2 \
                         AND pg_catalog.pg_has_role(nspowner, 'USAGE') AND NOT EXISTS (\
                           SELECT FROM pg_catalog.pg_depend WHERE refobjid = n.oid \
                           AND refclassid = 'pg_catalog.pg_namespace'::regclass) \
                         FROM pg_catalog.pg_namespace n WHERE nspname = $1";
        let removable = self.link.value::<Option<bool>>(removable, &[&self.schema, &COMMENT])?;
        if removable == Some(true) {
            self.link.batch(&format!("DROP SCHEMA {}", quote(&self.schema)))?;
        }
        self.link.batch("COMMIT")
    }
}
