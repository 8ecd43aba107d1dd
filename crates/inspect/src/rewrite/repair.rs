//! Repairs footers that strict readers refuse, or go wrong with.
//!
//! What can be derived from other parts of the footer, or from the headers of pages, is set right: sums, paths, places and
//! sizes. What cannot be derived and is optional is left out: impossible counts and bounds. Nothing outside of the footer
//! changes.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;

use sawmill_footer::{
    ColumnChunk, ConvertedType, DumpLine, DumpValue, Element, Footer, LogicalType, Options, RangeReader,
    Root, RowGroup, dump,
};

use crate::check::bounds::impossible_bounds;
use crate::check::structure::{has_unknown_levels, wrong_converted_type};
use crate::check::{Inconsistency, check, check_file};
use crate::chunks::sizes::body_of;
use crate::error::Error;
use crate::pages::chunks::check_pages;
use crate::rewrite::output::{I32, I64, Output};
use crate::rewrite::places::{Offsets, Places};
use crate::rewrite::repairs::Repairs;
use crate::rewrite::repetition::Repetitions;
use crate::rewrite::sizes::{COMPRESSED, Sizes, UNCOMPRESSED};
use crate::rewrite::{Edit, Editor, LEFT_OUT, Place, rewrite};
use crate::views::dump::footer_of;

/// The length of what follows a footer: its length, and the magic bytes again.
const TAIL: usize = 8;

/// A repaired footer.
pub struct Repaired {
    /// The bytes of the footer, without its length and the magic. They are the original's if nothing was repaired.
    pub footer: Vec<u8>,
    /// Where the footer starts in the file. The bytes before it stay.
    pub start: u64,
    /// The changes.
    pub repairs: Repairs,
    /// What [`check_file`](crate::check_file) and a check of all pages find after the repair.
    pub left: Vec<Inconsistency>,
    /// Whether repairs were possible, and would have left more wrong.
    pub withdrawn: bool,
}

/// Repairs the footer of a file called `name`, unless it is longer than `max_footer` bytes.
///
/// Costs six walks over the footer and memory for six others, and reads the file as the check of all its pages does,
/// the headers of pages twice. A repair that would leave more wrong than there was is none.
///
/// # Errors
///
/// The file cannot be read, or has no footer; the footer is encrypted or signed, or so damaged that it cannot be
/// decoded after the repair.
pub fn repaired<R: RangeReader + ?Sized>(reader: &R, name: &str, max_footer: u64) -> Result<Repaired, Error> {
    let wrong = |what: &str, advice: &str| Error::new(what, name, advice);
    let found =
        footer_of(reader, max_footer).map_err(|error| wrong(&format!("reading failed: {error}"), ""))?;
    let Some((bytes, start, root)) = found else {
        let longer = length_of(reader).filter(|len| *len > max_footer);
        return Err(match longer {
            Some(len) => wrong(
                &format!("expected a footer of at most {max_footer} bytes, found one of {len}"),
                "allow that with --max-footer",
            ),
            None => wrong("expected a Parquet file, found none", "the file is cut off: copy it again"),
        });
    };
    if root != Root::FileMetaData {
        let what = "expected a footer that is not encrypted, found an encrypted one";
        return Err(wrong(what, "decrypt the file, or write it with a plaintext footer"));
    }
    let mut repairs = Repairs::default();
    let mut to_decode = ToDecode { bytes: &bytes, digits: None, noted: Vec::new() };
    let decodable = rewrite(&bytes, &mut to_decode).map_err(|error| error.in_file(name))?;
    let options = Options::new().tail_hint(TAIL).max_footer(u64::MAX);
    let decode = |footer: &[u8]| Footer::read(&Replaced { footer, start }, name, &options);
    // A repair may have dropped what the decoder needs.
    let footer = decode(&decodable).map_err(|error| decode(&bytes).err().unwrap_or(error))?;
    let is_signed = decode(&bytes).is_ok_and(|original| !original.trailing_bytes().is_empty());
    if is_signed || footer.encryption_algorithm()?.is_some() {
        let what = "expected a file that is neither signed nor encrypted";
        return Err(wrong(what, "a repair would make the signature invalid: write the file again"));
    }
    for (repair, [group, column]) in to_decode.noted {
        let chunk = group.zip(column).and_then(|(group, column)| footer.column_chunk(group, column));
        repairs.add(repair, chunk.map(|chunk| chunk.path()), group);
    }
    let missing = Repetitions::find(&footer, reader, &mut repairs);
    let completed = missing.map(|mut missing| rewrite(footer.bytes(), &mut missing)).transpose()?;
    let footer = completed.map_or(Ok(footer), |bytes| decode(&bytes))?;
    let places = Places::find(&footer, reader);
    if reader.is_stopped() {
        return Err(wrong("stopped", ""));
    }
    let mut offsets = Offsets { footer: &footer, places: &places, repairs: &mut repairs };
    let placed = rewrite(footer.bytes(), &mut offsets)?;
    let footer = decode(&placed)?;
    let sizes = Sizes::new(&footer, &places);
    let mut consistent =
        Consistent { footer: &footer, repairs: &mut repairs, body: body_of(&footer), places: &places, sizes };
    let rewritten = rewrite(footer.bytes(), &mut consistent)?;
    let footer = if repairs.is_empty() { bytes.clone() } else { rewritten };
    let left = faults(&decode(&footer)?, reader)?;
    let before = match decode(&bytes) {
        Ok(original) if !(left.is_empty() || repairs.is_empty()) => Some(faults(&original, reader)?),
        _ => None,
    };
    Ok(match before.filter(|before| before.len() < left.len()) {
        // A fault that nothing here foresees: the repairs do harm.
        Some(before) => {
            Repaired { footer: bytes, start, repairs: Repairs::default(), left: before, withdrawn: true }
        }
        None => Repaired { footer, start, repairs, left, withdrawn: false },
    })
}

/// The length of a footer as the file's last bytes state it.
fn length_of<R: RangeReader + ?Sized>(reader: &R) -> Option<u64> {
    let (len, mut tail) = (reader.len().ok()?, [0; TAIL]);
    reader.read_exact_at(len.checked_sub(TAIL as u64)?, &mut tail).ok()?;
    let [a, b, c, d, ..] = tail;
    let footer = u64::from(u32::from_le_bytes([a, b, c, d]));
    (tail.starts_with(&[a, b, c, d, b'P', b'A', b'R']) && footer + 12 <= len).then_some(footer)
}

/// All that is wrong with a file.
fn faults<R: RangeReader + ?Sized>(footer: &Footer, reader: &R) -> Result<Vec<Inconsistency>, Error> {
    let mut all = Vec::new();
    if footer.has_no_data() {
        check(footer, |found| all.push(found));
        return Ok(all);
    }
    check_file(footer, reader, |found| all.push(found))?;
    check_pages(footer, reader, |found| all.push(found));
    Ok(all)
}

/// A file whose footer is replaced: the places in it can be compared with where it begins.
struct Replaced<'b> {
    footer: &'b [u8],
    start: u64,
}

impl RangeReader for Replaced<'_> {
    fn len(&self) -> io::Result<u64> {
        Ok(self.start + (self.footer.len() + TAIL) as u64)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let at = offset.checked_sub(self.start).and_then(|at| usize::try_from(at).ok());
        let at = at.ok_or(io::ErrorKind::UnexpectedEof)?;
        let len = u32::try_from(self.footer.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let tail = [len.to_le_bytes(), *b"PAR1"].concat();
        let footer = self.footer.get(at..).unwrap_or_default();
        let tail = tail.get(at.saturating_sub(self.footer.len())..).unwrap_or_default();
        footer.chain(tail).read_exact(buffer)
    }
}

/// The first walk: what keeps a footer from being decoded.
struct ToDecode<'b> {
    bytes: &'b [u8],
    /// What [`digits_of`] finds, once a decimal lacks some.
    digits: Option<Digits>,
    noted: Vec<Noted>,
}

/// A repair, with its row group and column.
type Noted = ((String, String, String), [Option<usize>; 2]);

impl Editor for ToDecode<'_> {
    fn value(&mut self, place: &Place, line: &DumpLine<'_>) -> Edit {
        let name = line.name.unwrap_or_default();
        if let Some(expected) = line.expected {
            let was = format!("{}, not {expected}", line.wire);
            self.note((place, name), was, LEFT_OUT.to_owned());
            return Edit::Drop;
        }
        Edit::Keep
    }

    fn missing(&mut self, place: &Place, next: i16, output: &mut Output) {
        if place.container() != "DecimalType" || ![1, 2].iter().any(|id| next > *id && place.lacks(*id)) {
            return;
        }
        let digits = self.digits.get_or_insert_with(|| digits_of(self.bytes));
        let element = place.index_in("schema").unwrap_or_default();
        let [scale, precision] = digits.get(&element).copied().unwrap_or_default();
        // The format's default of the scale is 0.
        let scale = scale.or((precision.is_some() || next != i16::MAX).then_some(0));
        for (id, name, known) in [(1, "scale", scale), (2, "precision", precision)] {
            let Some(known) = known.filter(|_| next > id && place.lacks(id)) else { continue };
            output.field(id, I32);
            output.integer(I32, known);
            self.note((place, name), "missing".to_owned(), known.to_string());
        }
    }
}

/// For each element of the schema, the scale and the precision beside its logical type.
type Digits = BTreeMap<usize, [Option<i64>; 2]>;

fn digits_of(footer: &[u8]) -> Digits {
    let (mut all, mut element) = (Digits::new(), 0);
    // Writing these bytes again reports where they are malformed.
    let _ = dump(footer, Root::FileMetaData, |line| {
        let which = match line.name {
            Some("scale") => 0,
            Some("precision") => 1,
            _ => 2,
        };
        match (line.depth, line.value) {
            (1, _) => element = line.index.unwrap_or_default(),
            (2, DumpValue::Integer(found)) => {
                if let Some(digits) = all.entry(element).or_default().get_mut(which) {
                    *digits = Some(found);
                }
            }
            _ => {}
        }
        true
    });
    all
}

impl ToDecode<'_> {
    fn note(&mut self, (place, name): (&Place, &str), was: String, now: String) {
        let chunk = ["row_groups", "columns"].map(|list| place.index_in(list));
        self.noted.push(((place.path(name), was, now), chunk));
    }
}

/// The last walk: what contradicts the rest of the footer.
struct Consistent<'a, 'r> {
    footer: &'a Footer,
    repairs: &'r mut Repairs,
    /// The part of the file that can hold data and indexes.
    body: Range<u64>,
    places: &'a Places,
    sizes: Sizes<'a>,
}

impl Editor for Consistent<'_, '_> {
    fn value(&mut self, place: &Place, line: &DumpLine<'_>) -> Edit {
        let name = line.name.unwrap_or_default();
        let number = match line.value {
            DumpValue::Integer(value) => Some(value),
            _ => None,
        };
        let wanted = match place.container() {
            "FileMetaData" => self.of_file(name),
            "RowGroup" => self.of_row_group(place, name),
            "SchemaElement" if name == "converted_type" => {
                Wanted::nothing_if(self.element(place).and_then(wrong_converted_type).is_some())
            }
            "ColumnChunk" | "ColumnMetaData" | "Statistics" | "SizeStatistics" => {
                self.of_chunk(place, name, line)
            }
            _ => Wanted::Kept,
        };
        let footer = self.footer;
        let was = || match &line.value {
            DumpValue::Text(b"") => "empty".to_owned(),
            DumpValue::Binary(_) | DumpValue::Text(_) => {
                let found = chunk_at(footer, place).and_then(|chunk| wrong_bound(footer, &chunk, name));
                found.unwrap_or("of another length").to_owned()
            }
            DumpValue::List(_) | DumpValue::Struct(_) => "impossible".to_owned(),
            value => value.to_string(),
        };
        match wanted {
            Wanted::Kept => Edit::Keep,
            Wanted::Number(value) if number == Some(value) => Edit::Keep,
            Wanted::Number(value) => {
                self.note((place, name), was(), value.to_string());
                Edit::Integer(value)
            }
            Wanted::Nothing => {
                // A path is written again in its right form.
                if name != "path_in_schema" {
                    self.note((place, name), was(), LEFT_OUT.to_owned());
                }
                Edit::Drop
            }
        }
    }

    fn missing(&mut self, place: &Place, next: i16, output: &mut Output) {
        let lacks = |id: i16| next > id && place.lacks(id);
        match place.container() {
            "ColumnChunk" if lacks(2) => {
                output.field(2, I64);
                output.integer(I64, 0);
                self.note((place, "file_offset"), "missing".to_owned(), "0".to_owned());
            }
            "ColumnMetaData" if lacks(3) => {
                if let Some(chunk) = self.chunk(place) {
                    output.texts(3, &chunk.element().path_names());
                    let now = "the path in the schema".to_owned();
                    self.note((place, "path_in_schema"), "missing or another path".to_owned(), now);
                }
            }
            "SchemaElement" => self.missing_in_schema(place, next, output),
            _ => {}
        }
    }
}

/// What a field should be.
enum Wanted {
    Kept,
    Nothing,
    Number(i64),
}

impl Wanted {
    fn number(known: Option<i64>) -> Self {
        known.map_or(Self::Kept, Self::Number)
    }

    fn nothing_if(is_wrong: bool) -> Self {
        if is_wrong { Self::Nothing } else { Self::Kept }
    }
}

impl<'a> Consistent<'a, '_> {
    fn note(&mut self, (place, name): (&Place, &str), was: String, now: String) {
        let of_chunk = self.chunk(place).map(|chunk| chunk.path());
        let column = of_chunk.or(self.element(place).map(|element| element.path()));
        self.repairs.add((place.path(name), was, now), column, place.index_in("row_groups"));
    }

    fn chunk(&self, place: &Place) -> Option<ColumnChunk<'a>> {
        chunk_at(self.footer, place)
    }

    fn element(&self, place: &Place) -> Option<Element<'a>> {
        self.footer.schema().element(place.index_in("schema")?)
    }

    fn of_file(&self, name: &str) -> Wanted {
        match name {
            "num_rows" => {
                let rows = self.footer.row_groups().map(|group| self.sizes.rows(&group));
                Wanted::Number(rows.fold(0, i64::saturating_add))
            }
            "column_orders" => {
                let leaves = self.footer.schema().num_leaves();
                Wanted::nothing_if(self.footer.column_orders().is_some_and(|orders| orders.len() != leaves))
            }
            _ => Wanted::Kept,
        }
    }

    fn of_row_group(&mut self, place: &Place, name: &str) -> Wanted {
        let group = place.index_in("row_groups").and_then(|group| self.footer.row_group(group));
        let Some(group) = group else { return Wanted::Kept };
        match name {
            "total_byte_size" => Wanted::number(self.sizes.of_group(&group).sums[UNCOMPRESSED]),
            "total_compressed_size" => Wanted::number(self.sizes.of_group(&group).sums[COMPRESSED]),
            "num_rows" => Wanted::Number(self.sizes.rows(&group)),
            "file_offset" => self.group_offset(&group),
            "ordinal" => Wanted::Number(i64::try_from(group.index()).unwrap_or(i64::MAX)),
            "sorting_columns" => {
                let leaves = self.footer.schema().num_leaves();
                let is_column = |index: i32| usize::try_from(index).is_ok_and(|index| index < leaves);
                let mut by = group.sorting_columns().into_iter().flatten();
                Wanted::nothing_if(by.any(|by| !is_column(by.column_idx)))
            }
            _ => Wanted::Kept,
        }
    }

    /// Where a row group starts, if its first pages were found, or its stated place is not in the file.
    fn group_offset(&self, group: &RowGroup<'_>) -> Wanted {
        let Some(first) = group.column(0).filter(|first| first.has_metadata()) else { return Wanted::Kept };
        let stated = group.file_offset().and_then(|offset| u64::try_from(offset).ok());
        let is_possible = stated.is_some_and(|offset| self.body.contains(&offset));
        match self.places.pages(&first).map(|found| found.start) {
            None if is_possible => Wanted::Kept,
            start => Wanted::number(i64::try_from(start.unwrap_or(first.byte_range().start)).ok()),
        }
    }

    fn of_chunk(&mut self, place: &Place, name: &str, line: &DumpLine<'_>) -> Wanted {
        let Some(chunk) = self.chunk(place) else { return Wanted::Kept };
        let number = match line.value {
            DumpValue::Integer(value) => value,
            _ => 0,
        };
        let part = |sizes: &mut Sizes<'a>, which: usize| {
            let parts = &sizes.of_group(&chunk.row_group()).parts;
            Wanted::number(parts.get(chunk.position()).and_then(|part| part[which]))
        };
        match (place.container(), name) {
            ("ColumnChunk", "file_path") => Wanted::nothing_if(line.value == DumpValue::Text(b"")),
            ("ColumnChunk", "file_offset") if number < 0 => Wanted::Number(0),
            ("ColumnMetaData", "num_values") => Wanted::number(self.sizes.values(&chunk)),
            ("ColumnMetaData", "total_uncompressed_size") => part(&mut self.sizes, UNCOMPRESSED),
            ("ColumnMetaData", "total_compressed_size") => part(&mut self.sizes, COMPRESSED),
            ("ColumnMetaData", "encoding_stats") => {
                let stats = chunk.details().ok().and_then(|found| found.encoding_stats).unwrap_or_default();
                Wanted::nothing_if(stats.iter().any(|stats| stats.count < 0))
            }
            ("ColumnMetaData", "path_in_schema") => match chunk.details() {
                Ok(found) => Wanted::nothing_if(found.path_in_schema != Some(chunk.element().path_names())),
                // Another field is malformed.
                Err(_) => Wanted::Kept,
            },
            ("ColumnMetaData", "index_page_offset") => Wanted::nothing_if(number < 0),
            ("Statistics", "null_count" | "nan_count") => {
                let values = self.sizes.values(&chunk).unwrap_or(i64::MAX);
                Wanted::nothing_if(!(0..=values).contains(&number))
            }
            ("Statistics", "distinct_count") => Wanted::nothing_if(number < 0),
            ("Statistics", _) => Wanted::nothing_if(wrong_bound(self.footer, &chunk, name).is_some()),
            ("SizeStatistics", _) => self.of_sizes(&chunk, name, number),
            (_, name) => self.of_index(&chunk, name),
        }
    }

    /// An index or Bloom filter that is nowhere in the file.
    fn of_index(&self, chunk: &ColumnChunk<'_>, name: &str) -> Wanted {
        let Ok(found) = chunk.locations() else { return Wanted::Kept };
        let (offset, length) = match name {
            "offset_index_offset" | "offset_index_length" => {
                (found.offset_index_offset, found.offset_index_length)
            }
            "column_index_offset" | "column_index_length" => {
                (found.column_index_offset, found.column_index_length)
            }
            // Old writers gave Bloom filters only an offset.
            "bloom_filter_offset" | "bloom_filter_length" => {
                (found.bloom_filter_offset, Some(found.bloom_filter_length.unwrap_or(1)))
            }
            _ => return Wanted::Kept,
        };
        let range = offset.zip(length).and_then(|(offset, length)| {
            let (start, length) = (u64::try_from(offset).ok()?, u64::try_from(length).ok()?);
            Some(start..start.checked_add(length)?)
        });
        let is_inside = |range: Range<u64>| range.start >= self.body.start && range.end <= self.body.end;
        Wanted::nothing_if(!range.is_some_and(is_inside))
    }

    fn of_sizes(&mut self, chunk: &ColumnChunk<'_>, name: &str, number: i64) -> Wanted {
        let Ok(Some(sizes)) = chunk.size_statistics() else { return Wanted::Kept };
        let element = chunk.element();
        let (histogram, max) = match name {
            "unencoded_byte_array_data_bytes" => return Wanted::nothing_if(number < 0),
            "repetition_level_histogram" => (sizes.repetition_level_histogram, element.max_rep()),
            "definition_level_histogram" => (sizes.definition_level_histogram, element.max_def()),
            _ => return Wanted::Kept,
        };
        let Some(histogram) = histogram.filter(|histogram| !histogram.is_empty()) else {
            return Wanted::Kept;
        };
        let sum: i128 = histogram.iter().map(|&count| i128::from(count)).sum();
        // Levels are unknown if the schema lacks a repetition, and only the histogram tells them.
        let is_right = (histogram.len() as u64 == u64::from(max) + 1 || has_unknown_levels(element))
            && self.sizes.values(chunk).is_none_or(|values| sum == i128::from(values))
            && histogram.iter().all(|&count| count >= 0);
        Wanted::nothing_if(!is_right)
    }

    fn missing_in_schema(&mut self, place: &Place, next: i16, output: &mut Output) {
        let Some(element) = self.element(place) else { return };
        if next > 7
            && place.lacks(7)
            && element.converted_type() == Some(ConvertedType::Decimal)
            && element.scale().is_none()
        {
            let scale = match element.logical_type() {
                Some(LogicalType::Decimal { scale, .. }) => *scale,
                _ => 0,
            };
            output.field(7, I32);
            output.integer(I32, scale.into());
            self.note((place, "scale"), "missing".to_owned(), scale.to_string());
        }
    }
}

/// The chunk in which a place is.
fn chunk_at<'a>(footer: &'a Footer, place: &Place) -> Option<ColumnChunk<'a>> {
    footer.column_chunk(place.index_in("row_groups")?, place.index_in("columns")?)
}

/// How a field of the statistics is a bound that cannot be true, if it is one.
fn wrong_bound(footer: &Footer, chunk: &ColumnChunk<'_>, field: &str) -> Option<&'static str> {
    let statistics = chunk.statistics().ok().flatten()?;
    let found = impossible_bounds(footer, chunk, &statistics);
    let mut found = found.iter().filter(|found| found.fields.contains(&field));
    Some(if found.next()?.fields.len() == 1 { "of another length" } else { "in the wrong order" })
}
