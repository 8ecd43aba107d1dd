//! The composite types and enumerations of a new table. They are created under unused names, renamed with the
//! table, and dropped with it.
//!
//! A comment on each type says that the loader created it, so types of other owners are never touched.

use sawmill_loader::{TableName, literal, quote};
use sawmill_source::{Error, Kind, Result};

use crate::table::catalogue::{Link, find};
use crate::types::natural::MadeComposite;

/// The comment on each type.
const COMMENT: &str = "made by sawmill load with its table";

/// A type that is created with a table.
pub(crate) enum MadeType {
    Composite(MadeComposite),
    Enumeration {
        /// Its schema and name.
        name: TableName,
        /// The position of its column in the source's schema.
        column: usize,
        /// The values of that column, which [`crate::types::enumerations`] finds.
        labels: Vec<String>,
    },
}

impl MadeType {
    /// Its schema and name; types and tables share their names.
    pub(crate) fn name(&self) -> &TableName {
        match self {
            Self::Composite(composite) => &composite.name,
            Self::Enumeration { name, .. } => name,
        }
    }

    /// The column of an enumeration, and the place for its labels.
    pub(crate) fn enumeration(&mut self) -> Option<(usize, &mut Vec<String>)> {
        match self {
            Self::Composite(_) => None,
            Self::Enumeration { column, labels, .. } => Some((*column, labels)),
        }
    }

    /// The statement that creates it.
    pub(crate) fn create(&self) -> String {
        match self {
            Self::Composite(composite) => composite.create(),
            Self::Enumeration { name, labels, .. } => {
                let labels: Vec<String> = labels.iter().map(|label| literal(label)).collect();
                format!("CREATE TYPE {} AS ENUM ({})", name.quoted(), labels.join(", "))
            }
        }
    }
}

/// The statements that mark types as the loader's own, each after a semicolon.
pub(crate) fn mark(types: &[MadeType]) -> String {
    types.iter().map(|made| format!("; COMMENT ON TYPE {} IS '{COMMENT}'", made.name().quoted())).collect()
}

/// Drops types that a dropped table of this name has left behind, in the caller's transaction.
pub(crate) fn drop_left(link: Link<'_>, types: &[MadeType]) -> Result<()> {
    let names: Vec<TableName> = types.iter().map(|made| made.name().clone()).collect();
    drop_unused(link, &names)
}

/// Checks, before a row is sent, that the final names of types are free or will be: types that the loader
/// created go with `replaced`, the table that will be dropped, and those that a dropped table left behind are
/// removed.
pub(crate) fn check_names(link: Link<'_>, types: &[MadeType], replaced: Option<u32>) -> Result<()> {
    let going = replaced.map_or(Ok(Vec::new()), |oid| of_table(link, oid))?;
    for made in types {
        let free = match of_others(link, made.name())? {
            None => find(link, made.name())?.is_none(),
            Some(taken) => !taken || going.contains(made.name()),
        };
        if !free {
            let instead = match made {
                MadeType::Composite(_) => "nested values as jsonb",
                MadeType::Enumeration { .. } => "enumerations as text (--enums text)",
            };
            return Err(Error::new(Kind::Exists, format!("a type or table {} already exists", made.name()))
                .at(link.place())
                .advise(format!("drop it, or load into a table of another name; or load {instead}")));
        }
    }
    Ok(())
}

/// Whether the type of this name is not the loader's, or a table has columns of it; `None` if the type does
/// not exist.
fn of_others(link: Link<'_>, name: &TableName) -> Result<Option<bool>> {
    let sql = "SELECT coalesce(pg_catalog.obj_description(t.oid, 'pg_type'), '') <> $2 OR EXISTS (\
                 SELECT FROM pg_catalog.pg_depend d \
                 JOIN pg_catalog.pg_class c ON c.oid = d.objid AND c.relkind <> 'c' \
                 WHERE d.classid = 'pg_catalog.pg_class'::regclass \
                 AND d.refclassid = 'pg_catalog.pg_type'::regclass AND d.refobjid IN (t.oid, t.typarray)) \
               FROM pg_catalog.pg_type t WHERE t.oid = to_regtype($1)";
    Ok(link.first(sql, &[&name.quoted(), &COMMENT])?.map(|(taken,)| taken))
}

/// The types that the loader created for the columns of a table, with those nested in them.
fn of_table(link: Link<'_>, oid: u32) -> Result<Vec<TableName>> {
    let sql = "WITH RECURSIVE part (typid) AS (\
                 SELECT atttypid FROM pg_catalog.pg_attribute \
                 WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped \
                 UNION SELECT inside.typid FROM part JOIN pg_catalog.pg_type t ON t.oid = part.typid \
                 CROSS JOIN LATERAL (\
                   SELECT t.typelem AS typid WHERE t.typelem <> 0 \
                   UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a WHERE t.typrelid <> 0 \
                   AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped) inside) \
               SELECT n.nspname::text, t.typname::text FROM part JOIN pg_catalog.pg_type t ON t.oid = part.typid \
               JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace \
               WHERE pg_catalog.obj_description(t.oid, 'pg_type') = $2";
    link.rows(sql, &[&oid, &COMMENT])
}

/// Drops a table and the types that the loader created for it, in the caller's transaction. Types that
/// another table uses stay.
pub(crate) fn drop_table(link: Link<'_>, table: &TableName, oid: u32) -> Result<()> {
    let types = of_table(link, oid)?;
    link.batch(&format!("DROP TABLE IF EXISTS {}", table.quoted()))?;
    drop_unused(link, &types)
}

/// Drops types unless one of them is used elsewhere.
fn drop_unused(link: Link<'_>, types: &[TableName]) -> Result<()> {
    let mut names = Vec::with_capacity(types.len());
    for name in types {
        match of_others(link, name)? {
            None => {}
            Some(true) => return Ok(()),
            Some(false) => names.push(name.quoted()),
        }
    }
    match names.is_empty() {
        true => Ok(()),
        // In one statement: some contain others.
        false => link.batch(&format!("DROP TYPE {}", names.join(", "))),
    }
}

/// Gives the types of a staging table their final names, in the caller's transaction.
pub(crate) fn rename(link: Link<'_>, from: &[MadeType], to: &[MadeType]) -> Result<()> {
    drop_left(link, to)?;
    for (from, to) in from.iter().zip(to) {
        let (from, to) = (from.name().quoted(), quote(to.name().name()));
        link.batch(&format!("ALTER TYPE {from} RENAME TO {to}"))?;
    }
    Ok(())
}
