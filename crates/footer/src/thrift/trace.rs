//! Finds the Thrift path of a byte offset: `row_groups[3].columns[17].meta_data.statistics`.
//!
//! Used only for errors. Walks the footer again along the format's tables, skipping values that end before
//! the offset and descending into the one that contains it.

use crate::thrift::cursor::{Cursor, FALSE, LIST, SET, STRUCT, TRUE};
use crate::thrift::format::{COLUMN_CHUNK, FieldKind, StructDef};

/// The path of `offset` within the struct of type `root` that starts at byte `start`.
pub(crate) fn path_of(bytes: &[u8], start: usize, root: &'static StructDef, offset: usize) -> String {
    let mut path = String::new();
    descend(&mut Cursor::new(bytes, start), root, offset, &mut path);
    path
}

/// The path of `offset` within a column chunk that starts at byte `start`.
pub(crate) fn path_in_chunk(
    bytes: &[u8],
    start: usize,
    row_group: usize,
    column: usize,
    offset: usize,
) -> String {
    let mut path = format!("row_groups[{row_group}].columns[{column}]");
    descend(&mut Cursor::new(bytes, start), &COLUMN_CHUNK, offset, &mut path);
    path
}

/// Appends the names below the struct at the cursor, down to the value that contains `offset`. Recursion is
/// no deeper than the format's tables, because values without a table are not entered.
fn descend(cursor: &mut Cursor<'_>, def: &'static StructDef, offset: usize, path: &mut String) {
    let mut last = 0;
    while let Ok(Some(field)) = cursor.next_field(&mut last) {
        let start = *cursor;
        if cursor.skip(field.wire).is_ok() && cursor.at <= offset {
            continue;
        }
        if offset < start.at {
            return;
        }
        if !path.is_empty() {
            path.push('.');
        }
        let known = def.field(field.id);
        match known {
            Some(known) => path.push_str(known.name),
            None => path.push_str(&format!("field {}", field.id)),
        }
        *cursor = start;
        return enter(cursor, field.wire, known.map(|known| &known.kind), offset, path);
    }
}

fn enter(
    cursor: &mut Cursor<'_>,
    wire: u8,
    kind: Option<&'static FieldKind>,
    offset: usize,
    path: &mut String,
) {
    match (wire, kind) {
        (STRUCT, Some(FieldKind::Struct(def))) => descend(cursor, def, offset, path),
        (LIST | SET, Some(FieldKind::List(element))) => {
            let Ok((wire, count)) = cursor.list() else { return };
            for index in 0..count {
                let start = *cursor;
                let skipped = match wire {
                    // In a list, a bool has its own byte.
                    TRUE | FALSE => cursor.byte().map(drop),
                    _ => cursor.skip(wire),
                };
                if skipped.is_ok() && cursor.at <= offset {
                    continue;
                }
                if offset >= start.at {
                    path.push_str(&format!("[{index}]"));
                    *cursor = start;
                    enter(cursor, wire, Some(element), offset, path);
                }
                return;
            }
        }
        _ => {}
    }
}
