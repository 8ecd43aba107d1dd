//! Checks the fields of structs. If a field is repeated, some readers take the first occurrence, others the
//! last. If an optional field has another type than the format gives it, the decoder and generated ones skip
//! it; others read its bytes as the type that they expect, and go wrong from there on. A required field may be
//! missing that the decoder does without.

use std::collections::HashSet;
use std::fmt::Write;

use sawmill_footer::{ColumnChunk, DumpLine, DumpValue, Footer, RangeReader, Root, dump};

use super::{Check, Inconsistency};

/// Required fields that the decoder does without: the struct, the id and the name.
const EXPECTED: [(&str, i16, &str); 2] =
    [("ColumnChunk", 2, "file_offset"), ("ColumnMetaData", 3, "path_in_schema")];

/// Counts, sizes and places that are never negative: the struct, and the ids of its fields. The decoder takes some
/// negative numbers as 0. Other checks cover null counts, dictionaries and indexes.
const NEVER_NEGATIVE: [(&str, &[i16]); 7] = [
    ("FileMetaData", &[3]),
    ("RowGroup", &[2, 3, 5, 6]),
    ("ColumnChunk", &[2]),
    ("ColumnMetaData", &[5, 6, 7, 9]),
    ("PageEncodingStats", &[3]),
    ("SizeStatistics", &[1]),
    ("Statistics", &[4, 9]),
];

/// The negative numbers that were named: where the row group or column chunk starts, or 0 for the file, and the field.
/// Comparisons leave them out: the decoder knows 0 in their stead.
pub(super) type Negative = HashSet<(usize, &'static str)>;

impl Check<'_, '_> {
    /// Checks all structs of the footer, of row groups and column chunks those that are decoded.
    pub(super) fn fields(&mut self) {
        let footer = self.footer;
        self.negative = walk(footer.bytes(), Root::FileMetaData, Some(footer), self.found);
    }

    /// Checks those page indexes of a column chunk that were decoded.
    pub(super) fn fields_of_indexes<R: RangeReader + ?Sized>(
        &mut self,
        chunk: &ColumnChunk<'_>,
        (offsets, bounds): (bool, bool),
        reader: &R,
    ) {
        let indexes = [
            (offsets, chunk.offset_index_range(), Root::OffsetIndex, "offset index"),
            (bounds, chunk.column_index_range(), Root::ColumnIndex, "column index"),
        ];
        for (_, range, root, name) in indexes.into_iter().filter(|(decoded, ..)| *decoded) {
            let Ok(Some(range)) = range else { continue };
            // The index was decoded, so this many bytes exist.
            let mut bytes = vec![0; (range.end - range.start) as usize];
            if reader.read_exact_at(range.start, &mut bytes).is_err() {
                continue;
            }
            let mut findings = Vec::new();
            walk(&bytes, root, None, &mut |finding| findings.push(finding));
            for finding in findings {
                self.chunk(chunk, finding.what, &format!(", {name}, {}", finding.path));
            }
        }
    }
}

/// Calls `found` for each repeated or missing field, and each one of another type than the format's, in a struct or
/// one within it, and each negative size, which it returns. Leaves out what `footer` did not decode.
fn walk(bytes: &[u8], root: Root, footer: Option<&Footer>, found: &mut dyn FnMut(Inconsistency)) -> Negative {
    let name = if root == Root::FileMetaData { "FileMetaData" } else { "" };
    let levels = vec![Level::new(name, 0)];
    let mut walk = Fields { footer, levels, left_out: None, negative: Negative::default(), found };
    // Decoding has already rejected what cannot be walked.
    let _ = dump(bytes, root, |line| {
        walk.line(&line);
        true
    });
    walk.close(0);
    walk.negative
}

/// A step of the path to a value.
#[derive(Clone, Copy, PartialEq)]
enum PathStep {
    Name(&'static str),
    /// A field unknown to this version of the format.
    Field(i16),
    Index(usize),
}

/// A struct or list that contains the current value.
struct Level {
    /// The name of the struct.
    name: &'static str,
    start: usize,
    seen: Seen,
    /// The last value in it.
    step: PathStep,
}

impl Level {
    fn new(name: &'static str, start: usize) -> Self {
        Self { name, start, seen: Seen::default(), step: PathStep::Index(0) }
    }
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

struct Fields<'f> {
    footer: Option<&'f Footer>,
    /// From the outermost struct to the one that contains the current value.
    levels: Vec<Level>,
    /// The depth of a value whose inside is left out.
    left_out: Option<usize>,
    negative: Negative,
    found: &'f mut dyn FnMut(Inconsistency),
}

impl Fields<'_> {
    fn line(&mut self, line: &DumpLine<'_>) {
        if self.left_out.is_some_and(|depth| line.depth > depth) {
            return;
        }
        self.left_out = None;
        self.close(line.depth + 1);
        let Some(level) = self.levels.last_mut() else { return };
        level.step = match (line.index, line.id, line.name) {
            (Some(index), ..) => PathStep::Index(index),
            (None, _, Some(name)) => PathStep::Name(name),
            (None, id, None) => PathStep::Field(id.unwrap_or_default()),
        };
        if let Some(id) = line.id
            && level.seen.again(id)
        {
            self.report(line.offset, |name| format!("expected the field `{name}` once, found it again"));
        }
        if let Some(expected) = line.expected {
            let found = line.wire;
            self.report(line.offset, |name| {
                format!("expected the field `{name}` as {expected}, found {found}; it is skipped")
            });
        }
        if let DumpValue::Integer(found @ ..0) = line.value
            && line.expected.is_none()
        {
            self.negative(line, found);
        }
        match line.value {
            DumpValue::Struct(_) if !self.is_decoded() => self.left_out = Some(line.depth),
            DumpValue::Struct(name) => self.levels.push(Level::new(name, line.offset)),
            DumpValue::List(_) => self.levels.push(Level::new("", line.offset)),
            _ => {}
        }
    }

    /// Reports a negative number that must not be negative.
    fn negative(&mut self, line: &DumpLine<'_>, found: i64) {
        let level = self.levels.last();
        let ids = level.and_then(|level| NEVER_NEGATIVE.iter().find(|(name, _)| *name == level.name));
        if !ids.zip(line.id).is_some_and(|((_, ids), id)| ids.contains(&id)) {
            return;
        }
        self.report(line.offset, |name| format!("expected a `{name}` of at least 0, found {found}"));
        let around = self.levels.iter().rfind(|level| matches!(level.name, "RowGroup" | "ColumnChunk"));
        self.negative.insert((around.map_or(0, |level| level.start), line.name.unwrap_or_default()));
    }

    /// Whether the footer kept the current value: row groups and column chunks outside of a projection are left out.
    fn is_decoded(&self) -> bool {
        let Some(footer) = self.footer else { return true };
        let steps: [Option<PathStep>; 5] =
            std::array::from_fn(|at| self.levels.get(at).map(|level| level.step));
        match steps {
            [Some(PathStep::Name("row_groups")), Some(PathStep::Index(group)), None, ..] => {
                let whole = footer.num_row_groups() == footer.num_row_groups_in_file();
                whole || footer.row_groups().any(|decoded| decoded.index() == group)
            }
            [
                Some(PathStep::Name("row_groups")),
                Some(PathStep::Index(_)),
                Some(PathStep::Name("columns")),
                Some(PathStep::Index(column)),
                None,
            ] => footer.position_of(column).is_some(),
            _ => true,
        }
    }

    /// Ends all but the outermost `left` levels.
    fn close(&mut self, left: usize) {
        while self.levels.len() > left {
            let Some(mut ended) = self.levels.pop() else { return };
            let missing = EXPECTED.iter().filter(|(of, ..)| *of == ended.name);
            for (_, id, name) in missing {
                if !ended.seen.again(*id) {
                    let path = format!("{}.{name}", self.path());
                    let what = format!("expected the required field `{name}`, found none");
                    (self.found)(Inconsistency { what, path, offset: Some(ended.start as u64) });
                }
            }
        }
    }

    /// The path to the current value.
    fn path(&self) -> String {
        let mut path = String::new();
        for level in &self.levels {
            let dot = if path.is_empty() { "" } else { "." };
            // Writing to a String cannot fail.
            let _ = match level.step {
                PathStep::Name(field) => write!(path, "{dot}{field}"),
                PathStep::Field(id) => write!(path, "{dot}field {id}"),
                PathStep::Index(index) => write!(path, "[{index}]"),
            };
        }
        path
    }

    fn report(&mut self, offset: usize, what: impl FnOnce(&str) -> String) {
        let name = match self.levels.last().map(|level| level.step) {
            Some(PathStep::Name(field)) => field.to_owned(),
            Some(PathStep::Field(id)) => id.to_string(),
            Some(PathStep::Index(_)) | None => String::new(),
        };
        let (what, path) = (what(&name), self.path());
        (self.found)(Inconsistency { what, path, offset: Some(offset as u64) });
    }
}
