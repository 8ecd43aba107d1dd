//! The composite types and enumerations of a new table. They are created under unused names, renamed with the
//! table, and dropped with it.
//!
//! A comment on each type says that the loader created it, so types of other owners are never touched.

use std::sync::Arc;

use arrow_schema::{DataType, Field};
use sawmill_loader::{TableName, check_name, literal, quote};
use sawmill_pgcopy::{Attribute, ColumnType, Composite, MAX_DIMENSIONS, Part, PgType, item_of};
use sawmill_source::{Error, Kind, Result};

use crate::table::catalogue::{Link, find};

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

/// The form of lists, structs and maps in a new table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nested {
    /// One `jsonb` value a column.
    #[default]
    Jsonb,
    /// Arrays, and composite types that are created with the table.
    Native,
}

/// A composite type that is created with a table.
pub(crate) struct MadeComposite {
    /// Its schema and name; types and tables share their names.
    pub name: TableName,
    pub composite: Arc<Composite>,
}

impl MadeComposite {
    /// The statement that creates it.
    pub(crate) fn create(&self) -> String {
        let attributes: Vec<String> = self
            .composite
            .attributes
            .iter()
            .map(|attribute| format!("  {} {}", quote(&attribute.name), attribute.part.column_type))
            .collect();
        format!("CREATE TYPE {} AS (\n{}\n)", self.name.quoted(), attributes.join(",\n"))
    }
}

/// The type of a new column for this field, or why it has none. Composite types that it needs are named after
/// `name` and the fields below, and are added to `made`, inner ones first.
pub(crate) fn natural_type(
    field: &Field,
    nested: Nested,
    name: &TableName,
    made: &mut Vec<MadeComposite>,
) -> Result<ColumnType, String> {
    if nested == Nested::Jsonb {
        return PgType::natural(field).map(ColumnType::Plain);
    }
    if let Some(item) = item_of(field) {
        let mut item = item.into_owned();
        let mut dimensions = 1;
        while let Some(inner) = item_of(&item) {
            item = inner.into_owned();
            dimensions += 1;
        }
        if dimensions > MAX_DIMENSIONS {
            return Err(format!(
                "lists are nested {dimensions} deep, an array of PostgreSQL has at most {MAX_DIMENSIONS} dimensions"
            ));
        }
        let column_type = natural_type(&item, nested, name, made)?;
        return Ok(ColumnType::Array(Arc::new(Part { column_type, oid: 0 })));
    }
    let DataType::Struct(fields) = field.data_type() else {
        return PgType::natural(field).map(ColumnType::Plain);
    };
    let mut attributes = Vec::with_capacity(fields.len());
    for field in fields {
        check_name(field.name()).map_err(|what| format!("field {:?}: {what}", field.name()))?;
        let column_type = natural_type(field, nested, &name.below(field.name()), made)
            .map_err(|what| format!("field {:?}: {what}", field.name()))?;
        attributes.push(Attribute { name: field.name().clone(), part: Part { column_type, oid: 0 } });
    }
    let composite = Arc::new(Composite { name: name.quoted(), attributes });
    made.push(MadeComposite { name: name.clone(), composite: Arc::clone(&composite) });
    Ok(ColumnType::Composite(composite))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::Fields;

    fn list(item: DataType) -> DataType {
        DataType::List(Arc::new(Field::new("item", item, true)))
    }

    fn natural(data_type: DataType) -> (String, Vec<String>) {
        let table = TableName::new(Some("s"), "t").unwrap();
        let mut made = Vec::new();
        let field = Field::new("c", data_type, true);
        let column_type = natural_type(&field, Nested::Native, &table.below("c"), &mut made).unwrap();
        assert!(column_type.takes(&field));
        (column_type.to_string(), made.iter().map(|composite| composite.create().replace('\n', "")).collect())
    }

    #[test]
    fn lists_become_arrays_and_structs_types_of_their_own() {
        assert_eq!(natural(list(list(DataType::Int32))), ("integer[]".to_owned(), vec![]));
        let inner = Fields::from(vec![Field::new("x", list(DataType::UInt64), true)]);
        let outer = Fields::from(vec![
            Field::new("a b", DataType::Utf8, true),
            Field::new("inner", DataType::Struct(inner), true),
        ]);
        let (column, types) = natural(list(DataType::Struct(outer)));
        assert_eq!(column, "\"s\".\"t_c\"[]");
        assert_eq!(
            types,
            [
                "CREATE TYPE \"s\".\"t_c_inner\" AS (  \"x\" numeric(20,0)[])",
                "CREATE TYPE \"s\".\"t_c\" AS (  \"a b\" text,  \"inner\" \"s\".\"t_c_inner\")",
            ]
        );
    }
}
