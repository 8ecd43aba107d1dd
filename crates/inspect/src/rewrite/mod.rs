//! Footers that are written again, with changes: repaired, or without what they tell about the data.
//!
//! ```text
//! bytes ──dump──▶ values ──Editor: keep, drop, replace, insert──▶ bytes
//! ```
//!
//! Values stream from one footer to the other. Only the new footer is kept in memory.

mod chunk_pages;
mod footer_alone;
pub(crate) mod output;
mod places;
mod repair;
mod repairs;
mod repetition;
mod scrub;
mod sizes;
#[cfg(test)]
mod tests;

use sawmill_footer::{DumpLine, DumpValue, Root, dump};

use crate::error::Error;
pub use crate::rewrite::footer_alone::{scrubbed, write_file};
use crate::rewrite::output::Output;
pub use crate::rewrite::repair::{Repaired, repaired};
pub use crate::rewrite::repairs::{Repair, Repairs};

/// Notes that a field is left out.
const LEFT_OUT: &str = "left out";

/// Deeper values are not written again. The format nests seven deep.
const MAX_DEPTH: usize = 60;

/// What becomes of a value.
pub(crate) enum Edit {
    Keep,
    /// Only for fields.
    Drop,
    Integer(i64),
    Double(f64),
    Bytes(Vec<u8>),
}

/// Decides what becomes of the values of a footer.
pub(crate) trait Editor {
    /// What becomes of a value.
    fn value(&mut self, place: &Place, line: &DumpLine<'_>) -> Edit;

    /// Writes fields that the struct lacks, before its field `next` or at its end. `next` and the ids that
    /// [`Place::lacks`] names are in order: write those below `next`.
    fn missing(&mut self, place: &Place, next: i16, output: &mut Output);
}

/// A struct or list that contains the current value.
pub(crate) struct Level {
    /// The name of the struct in the format; empty for lists.
    name: &'static str,
    is_struct: bool,
    /// The ids of the fields so far, below 64.
    seen: u64,
    /// The last value in it: the name of its field, or its index.
    field: &'static str,
    index: usize,
}

impl Level {
    fn new(name: &'static str, is_struct: bool) -> Self {
        Self { name, is_struct, seen: 0, field: "", index: 0 }
    }
}

/// The structs and lists that contain the current value, from the outermost on.
pub(crate) struct Place(Vec<Level>);

impl Place {
    /// The struct that contains the current value, or the list.
    pub fn container(&self) -> &'static str {
        self.0.last().map_or("", |level| level.name)
    }

    /// The list whose element the current value is.
    pub fn list(&self) -> &'static str {
        match self.0.as_slice() {
            [.., around, last] if !last.is_struct => around.field,
            _ => "",
        }
    }

    /// The index of the current value in its list.
    pub fn index(&self) -> usize {
        self.0.last().map_or(0, |level| level.index)
    }

    /// The index of the current row group, column chunk or element of the schema.
    pub fn index_in(&self, list: &str) -> Option<usize> {
        let around = self.0.iter().zip(self.0.iter().skip(1));
        around
            .filter(|(around, inner)| around.field == list && !inner.is_struct)
            .map(|(_, inner)| inner.index)
            .next()
    }

    /// Whether the innermost struct had no field with this id so far.
    pub fn lacks(&self, id: i16) -> bool {
        self.0.last().is_some_and(|level| level.seen >> (id & 63) & 1 == 0)
    }

    /// The path to a field of the innermost struct, without the index of its row group and column.
    pub fn path(&self, field: &str) -> String {
        let around = self.0.iter().rev().skip(1).rev().filter(|level| level.is_struct);
        let names = around.map(|level| level.field);
        let mut path: Vec<&str> = names.filter(|name| !matches!(*name, "row_groups" | "columns")).collect();
        path.push(field);
        path.join(".")
    }
}

/// Writes a footer again as `editor` decides.
///
/// # Errors
///
/// The bytes are not a footer, or nest too deeply.
pub(crate) fn rewrite(bytes: &[u8], editor: &mut dyn Editor) -> Result<Vec<u8>, Error> {
    let place = Place(vec![Level::new("FileMetaData", true)]);
    let mut rewriting = Rewriting {
        bytes,
        editor,
        place,
        output: Output::with_room(bytes.len()),
        dropped: None,
        is_deep: false,
    };
    let walked = dump(bytes, Root::FileMetaData, |line| {
        rewriting.is_deep |= line.depth >= MAX_DEPTH;
        rewriting.line(&line);
        !rewriting.is_deep
    });
    walked?;
    if rewriting.is_deep {
        let what = format!("expected values nested at most {MAX_DEPTH} deep, found deeper ones");
        return Err(Error::new(what, "", "write the file again"));
    }
    rewriting.close(0);
    Ok(rewriting.output.into_bytes())
}

struct Rewriting<'a, 'e> {
    bytes: &'a [u8],
    editor: &'e mut dyn Editor,
    place: Place,
    output: Output,
    /// The depth of a value that is dropped with all in it.
    dropped: Option<usize>,
    is_deep: bool,
}

impl Rewriting<'_, '_> {
    fn line(&mut self, line: &DumpLine<'_>) {
        if self.dropped.is_some_and(|depth| line.depth > depth) {
            return;
        }
        self.dropped = None;
        self.close(line.depth + 1);
        if let Some(id) = line.id {
            self.insert(id);
        }
        if let Some(level) = self.place.0.last_mut() {
            level.field = line.name.unwrap_or_default();
            level.index = line.index.unwrap_or_default();
        }
        let edit = self.editor.value(&self.place, line);
        if matches!(edit, Edit::Drop) && line.id.is_some() {
            self.dropped = Some(line.depth);
            return;
        }
        if let (Some(level), Some(id @ 0..64)) = (self.place.0.last_mut(), line.id) {
            level.seen |= 1 << id;
        }
        self.write(line, edit);
    }

    fn write(&mut self, line: &DumpLine<'_>, edit: Edit) {
        let (output, wire) = (&mut self.output, output::wire(line.wire, &line.value));
        if let Some(id) = line.id {
            output.field(id, wire);
        }
        match (edit, line.value) {
            (Edit::Integer(value), _) => output.integer(wire, value),
            (Edit::Double(value), _) => output.raw(&value.to_le_bytes()),
            (Edit::Bytes(bytes), _) => output.bytes(wire, &bytes),
            // As a field, a bool is its wire type.
            (_, DumpValue::Bool(_)) if line.id.is_some() => {}
            (_, DumpValue::Bool(value)) => output.raw(&[if value { 1 } else { 2 }]),
            (_, DumpValue::Integer(value) | DumpValue::Named(value, _)) => output.integer(wire, value),
            (_, DumpValue::Double(value)) => output.raw(&value.to_le_bytes()),
            (_, DumpValue::Text(bytes) | DumpValue::Binary(bytes)) => output.bytes(wire, bytes),
            (_, DumpValue::Struct(name)) => {
                output.begin();
                self.place.0.push(Level::new(name, true));
            }
            (_, DumpValue::List(count)) => {
                // Only the list's header has the type of the elements.
                let element = self.bytes.get(line.offset).map_or(0, |header| header & 0x0f);
                output.list(element, count);
                self.place.0.push(Level::new("", false));
            }
        }
    }

    /// Lets the editor insert what the innermost struct lacks before its field `next`.
    fn insert(&mut self, next: i16) {
        self.output.written = 0;
        self.editor.missing(&self.place, next, &mut self.output);
        if let Some(level) = self.place.0.last_mut() {
            level.seen |= self.output.written;
        }
    }

    /// Ends all but the outermost `left` structs and lists.
    fn close(&mut self, left: usize) {
        while self.place.0.len() > left {
            if self.place.0.last().is_some_and(|level| level.is_struct) {
                self.insert(i16::MAX);
                self.output.stop();
            }
            self.place.0.pop();
        }
    }
}
