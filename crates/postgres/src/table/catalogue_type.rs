//! Types in the server's catalogue: the elements of an array, the attributes of a composite.

use std::sync::Arc;

use sawmill_loader::TableName;
use sawmill_pgcopy::{Attribute, ColumnType, Composite, Part, PgType};
use sawmill_source::Result;

use crate::table::catalogue::Link;

/// How deep nested types are followed; a composite type cannot contain itself.
const MAX_DEPTH: usize = 32;

/// The type of `pg_attribute.atttypid` and `atttypmod`; `None` if the loader cannot write it.
pub(crate) fn read(link: Link<'_>, oid: u32, modifier: i32) -> Result<Option<ColumnType>> {
    read_below(link, oid, modifier, MAX_DEPTH)
}

/// A type: its element, its relation, its schema, name and kind, its base type with a modifier, and how it is received.
type FoundType = (u32, u32, String, String, String, u32, i32, String);

fn read_below(link: Link<'_>, oid: u32, modifier: i32, depth: usize) -> Result<Option<ColumnType>> {
    if let Some(pg_type) = PgType::of_catalogue(oid, modifier) {
        return Ok(Some(ColumnType::Plain(pg_type)));
    }
    if depth == 0 {
        return Ok(None);
    }
    // An array type is the one that its element type names in typarray. Other types with elements, such as
    // point and oidvector, are not arrays. Row types of tables are left out: their columns may change.
    let sql = "SELECT coalesce((SELECT e.oid FROM pg_catalog.pg_type e \
                 WHERE e.oid = t.typelem AND e.typarray = t.oid), 0::oid), \
               coalesce(c.oid, 0::oid), n.nspname::text, t.typname::text, \
               t.typtype::text, t.typbasetype, t.typtypmod, \
               coalesce((SELECT prosrc FROM pg_catalog.pg_proc p WHERE p.oid = t.typreceive), '') \
               FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace \
               LEFT JOIN pg_catalog.pg_class c ON c.oid = t.typrelid AND t.typtype = 'c' AND c.relkind = 'c' \
               WHERE t.oid = $1";
    let found: Option<FoundType> = link.first(sql, &[&oid])?;
    let Some((element, relation, schema, name, kind, base, base_modifier, receive)) = found else {
        return Ok(None);
    };
    let name = || TableName::new(Some(&schema), &name);
    match (kind.as_str(), receive.as_str()) {
        // A domain is written as its base type, and the server checks it.
        ("d", _) => return read_below(link, base, base_modifier, depth - 1),
        ("e", _) => return Ok(Some(ColumnType::Enumeration(name()?.quoted()))),
        // citext and the like.
        ("b", "textrecv") => return Ok(Some(ColumnType::Plain(PgType::Text))),
        _ => {}
    }
    if element != 0 {
        // An array's modifier is its elements' modifier.
        let part = read_below(link, element, modifier, depth - 1)?;
        return Ok(part.map(|column_type| ColumnType::Array(Arc::new(Part { column_type, oid: element }))));
    }
    if relation == 0 {
        return Ok(None);
    }
    let sql = "SELECT attname::text, atttypid, atttypmod FROM pg_catalog.pg_attribute \
               WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped ORDER BY attnum";
    let mut attributes = Vec::new();
    for (name, oid, modifier) in link.rows(sql, &[&relation])? {
        let Some(column_type) = read_below(link, oid, modifier, depth - 1)? else { return Ok(None) };
        attributes.push(Attribute { name, part: Part { column_type, oid } });
    }
    let name = name()?.quoted();
    Ok(Some(ColumnType::Composite(Arc::new(Composite { name, attributes }))))
}
