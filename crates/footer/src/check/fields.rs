//! Checks the fields of structs. If a field is repeated, some readers take the first occurrence, others the
//! last. If an optional field has another type than the format gives it, this decoder and generated ones skip
//! it; others read its bytes as the type that they expect, and go wrong from there on. A required field may be
//! missing that this decoder does without.

use std::fmt::Write;

use super::{Check, Finding};
use crate::chunk::column_chunk::ColumnChunk;
use crate::open::source::RangeReader;
use crate::thrift::cursor::{Cursor, DEPTH_LIMIT, LIST, MAP, SET, STOP, STRUCT, Step, wire_name};
use crate::thrift::format::{
    COLUMN_CHUNK, COLUMN_INDEX, FILE_META_DATA, FieldKind, OFFSET_INDEX, ROW_GROUP, StructDef,
};

/// The field of a footer that lists its row groups, and the field of a row group that lists its column
/// chunks.
const ROW_GROUPS: i16 = 4;
const COLUMNS: i16 = 1;

impl Check<'_, '_> {
    /// Checks all structs of the footer, including those of the decoded row groups and column chunks.
    pub(super) fn fields(&mut self) {
        let footer = self.footer;
        let bytes = footer.bytes();
        walk(bytes, 0, (&FILE_META_DATA, Some(ROW_GROUPS)), &[], self.found);
        for group in footer.row_groups() {
            let path = [PathStep::Name("row_groups"), PathStep::Index(group.index())];
            walk(bytes, group.footer_offset(), (&ROW_GROUP, Some(COLUMNS)), &path, self.found);
            for chunk in group.columns() {
                let [groups, group] = path;
                let path = [groups, group, PathStep::Name("columns"), PathStep::Index(chunk.leaf())];
                walk(bytes, chunk.footer_offset(), (&COLUMN_CHUNK, None), &path, self.found);
            }
        }
    }
}

impl Check<'_, '_> {
    /// Checks those page indexes of a column chunk that were decoded.
    pub(super) fn fields_of_indexes<R: RangeReader + ?Sized>(
        &mut self,
        chunk: &ColumnChunk<'_>,
        (offsets, bounds): (bool, bool),
        reader: &R,
    ) {
        let indexes = [
            (offsets, chunk.offset_index_range(), &OFFSET_INDEX, "offset index"),
            (bounds, chunk.column_index_range(), &COLUMN_INDEX, "column index"),
        ];
        for (_, range, def, name) in indexes.into_iter().filter(|(decoded, ..)| *decoded) {
            let Ok(Some(range)) = range else { continue };
            // The index was decoded, so this many bytes exist.
            let mut bytes = vec![0; (range.end - range.start) as usize];
            if reader.read_exact_at(range.start, &mut bytes).is_err() {
                continue;
            }
            let mut findings = Vec::new();
            walk(&bytes, 0, (def, None), &[], &mut |finding| findings.push(finding));
            for finding in findings {
                self.chunk(chunk, finding.what, &format!(", {name}, {}", finding.path));
            }
        }
    }
}

/// Calls `found` for each repeated or missing field, and each one of another type than the format's, in the struct
/// that starts at an offset of the bytes, or in a struct within it. Skips the value of the field `apart` of
/// the outermost struct.
pub(super) fn walk(
    bytes: &[u8],
    start: usize,
    (def, apart): (&'static StructDef, Option<i16>),
    path: &[PathStep],
    found: &mut dyn FnMut(Finding),
) {
    let mut walk = Fields { cursor: Cursor::new(bytes, start), path: path.to_vec(), found };
    // Decoding has already rejected what cannot be walked.
    let _ = walk.fields(Some(def), apart, DEPTH_LIMIT);
}

/// A step of the path to a value.
#[derive(Clone, Copy)]
pub(super) enum PathStep {
    Name(&'static str),
    /// A field unknown to this version of the format.
    Field(i16),
    Index(usize),
}

struct Fields<'a, 'f> {
    cursor: Cursor<'a>,
    path: Vec<PathStep>,
    found: &'f mut dyn FnMut(Finding),
}

/// The field ids of a struct so far; the format's ids are small.
#[derive(Default)]
struct Seen {
    small: u64,
    others: Vec<i16>,
}

impl Seen {
    /// Records an id and returns whether it occurred before.
    fn again(&mut self, id: i16) -> bool {
        if let Ok(bit @ 0..64) = u32::try_from(id) {
            let again = self.small >> bit & 1 == 1;
            self.small |= 1 << bit;
            return again;
        }
        let place = self.others.binary_search(&id);
        if let Err(place) = place {
            self.others.insert(place, id);
        }
        place.is_ok()
    }
}

impl Fields<'_, '_> {
    fn fields(&mut self, def: Option<&'static StructDef>, apart: Option<i16>, depth: u32) -> Step<()> {
        let (mut seen, mut last) = (Seen::default(), 0);
        loop {
            let field = self.cursor.field(&mut last)?;
            if field.wire == STOP {
                let fields = def.map_or(&[][..], |def| def.fields);
                for missing in fields.iter().filter(|field| field.is_expected && !seen.again(field.id)) {
                    self.path.push(PathStep::Name(missing.name));
                    self.report(|name| format!("expected the required field `{name}`, found none"));
                    self.path.pop();
                }
                return Ok(());
            }
            let known = def.and_then(|def| def.field(field.id));
            self.path.push(known.map_or(PathStep::Field(field.id), |known| PathStep::Name(known.name)));
            if seen.again(field.id) {
                self.report(|name| format!("expected the field `{name}` once, found it again"));
            }
            if let Some(kind) = known.map(|known| &known.kind).filter(|kind| !kind.is(field.wire)) {
                let (expected, found) = (kind.wire_name(), wire_name(field.wire));
                self.report(|name| {
                    format!("expected the field `{name}` as {expected}, found {found}; it is skipped")
                });
            }
            match apart == Some(field.id) {
                true => self.cursor.skip(field.wire)?,
                false => self.value(field.wire, known.map(|known| &known.kind), depth)?,
            }
            self.path.pop();
        }
    }

    fn value(&mut self, wire: u8, kind: Option<&'static FieldKind>, depth: u32) -> Step<()> {
        match wire {
            STRUCT if depth > 0 => {
                let def = match kind {
                    Some(FieldKind::Struct(def)) => Some(*def),
                    _ => None,
                };
                self.fields(def, None, depth - 1)
            }
            LIST | SET if depth > 0 => self.elements(wire, kind, depth - 1),
            wire => self.cursor.skip(wire),
        }
    }

    fn elements(&mut self, list: u8, kind: Option<&'static FieldKind>, depth: u32) -> Step<()> {
        let start = self.cursor;
        let (wire, count) = self.cursor.list()?;
        if !matches!(wire, STRUCT | LIST | SET | MAP) {
            self.cursor = start;
            return self.cursor.skip(list);
        }
        let kind = match kind {
            Some(FieldKind::List(element)) => Some(*element),
            _ => None,
        };
        for index in 0..count {
            self.path.push(PathStep::Index(index));
            self.value(wire, kind, depth)?;
            self.path.pop();
        }
        Ok(())
    }

    fn report(&mut self, what: impl FnOnce(&str) -> String) {
        let (mut path, mut name) = (String::new(), String::new());
        for part in &self.path {
            let dot = if path.is_empty() { "" } else { "." };
            // Writing to a String cannot fail.
            let _ = match part {
                PathStep::Name(field) => write!(path, "{dot}{field}"),
                PathStep::Field(id) => write!(path, "{dot}field {id}"),
                PathStep::Index(index) => write!(path, "[{index}]"),
            };
        }
        match self.path.last() {
            Some(PathStep::Name(field)) => name.push_str(field),
            Some(PathStep::Field(id)) => name = id.to_string(),
            _ => {}
        }
        (self.found)(Finding { what: what(&name), path, offset: Some(self.cursor.at as u64) });
    }
}
