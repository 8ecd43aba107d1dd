//! How two footers differ: schema, layout, statistics.
//!
//! Columns are matched by their paths and compared as a whole. Statistics of chunks are compared one by one
//! where both files have the same number of rows in each row group; otherwise only their sums are.

use std::collections::BTreeMap;
use std::io::{self, Write};

use sawmill_footer::{ColumnChunk, Footer, RowGroup};
use serde::Serialize;

use crate::dataset::schema_difference::{self, alike};
use crate::file::open_file::OpenFile;
use crate::text::table::Table;
use crate::views::row_groups;
use crate::views::statistics::bounds_of;

/// The parts of footers to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparedParts {
    /// Columns, their types and order.
    pub schema: bool,
    /// Writer, row groups, codecs, encodings, sizes, sort orders, indexes.
    pub layout: bool,
    /// Null counts and bounds.
    pub statistics: bool,
}

/// Everything in which two footers differ.
#[derive(Serialize)]
pub struct FooterDifference {
    differences: Vec<Differing>,
}

/// One thing that differs.
#[derive(Serialize)]
struct Differing {
    part: &'static str,
    place: String,
    what: &'static str,
    a: Option<String>,
    b: Option<String>,
}

impl FooterDifference {
    /// Compares the decoded parts of two footers.
    pub fn between(a: &OpenFile, b: &OpenFile, parts: ComparedParts) -> Self {
        let mut comparison = Self { differences: Vec::new() };
        let columns = matching_columns(a, b);
        if parts.schema {
            comparison.schema(&a.footer, &b.footer);
        }
        if parts.layout {
            comparison.file(a, b);
            comparison.row_groups(&a.footer, &b.footer);
            columns.iter().for_each(|(path, places)| comparison.layout_of(path, *places, a, b));
        }
        if parts.statistics {
            columns.iter().for_each(|(path, places)| comparison.statistics_of(path, *places, a, b));
        }
        comparison
    }

    /// Whether nothing differs in the compared parts.
    pub fn is_empty(&self) -> bool {
        self.differences.is_empty()
    }

    /// How many things differ.
    pub fn len(&self) -> usize {
        self.differences.len()
    }

    /// Writes one line for each difference.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.is_empty() {
            return writeln!(out, "no differences");
        }
        let mut table = Table::new("part, where, what, A, B");
        for Differing { part, place, what, a, b } in &self.differences {
            let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "-".to_owned());
            table.row(&[part, place, what, &side(a), &side(b)]);
        }
        table.write(out)
    }
}

/// What A and B have; `None` for nothing.
type Sides = [Option<String>; 2];

/// The first row group where something differs, and in how many it does.
#[derive(Default)]
struct Found {
    differing: usize,
    first: Option<(usize, Sides)>,
}

impl Found {
    fn note(&mut self, group: usize, sides: Sides) {
        if sides[0] != sides[1] {
            self.differing += 1;
            self.first.get_or_insert((group, sides));
        }
    }
}

/// The positions of a column among the decoded ones of both footers.
type Places = (usize, usize);

/// The columns that both footers have. A path that occurs several times is matched in order.
fn matching_columns(a: &OpenFile, b: &OpenFile) -> Vec<(String, Places)> {
    let mut theirs: BTreeMap<&str, std::collections::VecDeque<usize>> = BTreeMap::new();
    for (place, column) in b.columns().iter().enumerate() {
        theirs.entry(&column.path).or_default().push_back(place);
    }
    let found = a.columns().iter().enumerate().filter_map(|(place, column)| {
        let there = theirs.get_mut(column.path.as_str())?.pop_front()?;
        Some((column.path.clone(), (place, there)))
    });
    found.collect()
}

/// The chunks of the column at this position, row group by row group.
fn chunks_at(footer: &Footer, place: usize) -> impl Iterator<Item = ColumnChunk<'_>> {
    (0..footer.num_row_groups()).filter_map(move |group| footer.column_chunk(group, place))
}

/// What all chunks of a column have, without repetition, in order.
fn distinct(footer: &Footer, place: usize, of: impl Fn(&ColumnChunk<'_>) -> String) -> String {
    let all: std::collections::BTreeSet<String> = chunks_at(footer, place).map(|chunk| of(&chunk)).collect();
    all.into_iter().collect::<Vec<_>>().join(", ")
}

fn sum(footer: &Footer, place: usize, of: impl Fn(&ColumnChunk<'_>) -> i64) -> String {
    chunks_at(footer, place).map(|chunk| of(&chunk)).fold(0, i64::saturating_add).to_string()
}

impl FooterDifference {
    fn note(&mut self, part: &'static str, place: &str, what: &'static str, sides: Sides) {
        let [a, b] = sides;
        if a != b {
            self.differences.push(Differing { part, place: place.to_owned(), what, a, b });
        }
    }

    fn schema(&mut self, a: &Footer, b: &Footer) {
        if alike(a.schema(), b.schema()) {
            return;
        }
        let columns = |footer: &Footer| {
            let mut columns: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for leaf in footer.schema().leaves() {
                columns.entry(leaf.path()).or_default().push(schema_difference::described(leaf));
            }
            columns
        };
        let (of_a, mut of_b) = (columns(a), columns(b));
        let before = self.differences.len();
        for (path, types) in of_a {
            let theirs = of_b.remove(&path).map(|types| types.join(", "));
            self.note("schema", &path, "type", [Some(types.join(", ")), theirs]);
        }
        for (path, types) in of_b {
            self.note("schema", &path, "type", [None, Some(types.join(", "))]);
        }
        let order = |footer: &Footer| footer.schema().leaves().map(|leaf| leaf.path()).collect::<Vec<_>>();
        if self.differences.len() == before {
            let what = if order(a) == order(b) { "field ids or groups" } else { "order of columns" };
            let differ = ["one", "another"].map(|side| Some(side.to_owned()));
            self.note("schema", "file", what, differ);
        }
    }

    fn file(&mut self, a: &OpenFile, b: &OpenFile) {
        let mut both = |what, of: fn(&Footer) -> Option<String>| {
            self.note("layout", "file", what, [of(&a.footer), of(&b.footer)]);
        };
        both("created_by", |footer| footer.created_by().map(|writer| writer.into_owned()));
        both("version", |footer| Some(footer.version().to_string()));
        both("rows", |footer| Some(footer.num_rows().to_string()));
        both("row groups", |footer| Some(footer.num_row_groups().to_string()));
        both("columns", |footer| Some(footer.num_columns().to_string()));
        both("file bytes", |footer| footer.file_len().map(|len| len.to_string()));
        both("footer bytes", |footer| Some(footer.footer_len().to_string()));
        let pairs = |file: &OpenFile| -> BTreeMap<String, String> {
            let pair = |(key, value): (std::borrow::Cow<'_, str>, Option<std::borrow::Cow<'_, str>>)| {
                let value = value.map_or_else(|| "no value".to_owned(), |value| value.into_owned());
                (key.into_owned(), value)
            };
            file.footer.key_value_metadata().map(pair).collect()
        };
        let (of_a, of_b) = (pairs(a), pairs(b));
        let keys: std::collections::BTreeSet<&String> = of_a.keys().chain(of_b.keys()).collect();
        for key in keys {
            let side = |pairs: &BTreeMap<String, String>| {
                let value = pairs.get(key)?;
                let shown: String = value.chars().take(40).collect();
                Some(if shown.len() < value.len() {
                    format!("{shown}… ({} bytes)", value.len())
                } else {
                    shown
                })
            };
            // Compared in full, shown clipped.
            if of_a.get(key) != of_b.get(key) {
                let (a, b) = (side(&of_a), side(&of_b));
                let place = format!("key {key}");
                self.differences.push(Differing { part: "layout", place, what: "value", a, b });
            }
        }
    }

    fn row_groups(&mut self, a: &Footer, b: &Footer) {
        let groups = a.num_row_groups().max(b.num_row_groups());
        let mut found = Found::default();
        for place in 0..groups {
            let rows = |footer: &Footer| footer.row_group(place).map(|group| group.num_rows().to_string());
            found.note(place, [rows(a), rows(b)]);
        }
        if let Found { differing, first: Some((place, sides)) } = found {
            self.note("layout", &among(&format!("row group {place}"), differing), "rows", sides);
        }
        let sorted = |footer: &Footer| {
            let by = |group: RowGroup<'_>| {
                let columns = row_groups::sorting_of(footer, &group)?;
                Some(columns.iter().map(row_groups::order_by).collect::<Vec<_>>().join(", "))
            };
            let all: std::collections::BTreeSet<Option<String>> = footer.row_groups().map(by).collect();
            let named: Vec<String> = all.into_iter().flatten().collect();
            (!named.is_empty()).then(|| named.join("; "))
        };
        self.note("layout", "file", "sorted by", [sorted(a), sorted(b)]);
    }

    fn layout_of(&mut self, path: &str, (here, there): Places, a: &OpenFile, b: &OpenFile) {
        let mut both = |what, of: &dyn Fn(&OpenFile, usize) -> String| {
            self.note("layout", path, what, [Some(of(a, here)), Some(of(b, there))]);
        };
        both("codec", &|file, at| distinct(&file.footer, at, |chunk| chunk.codec().to_string()));
        both("encodings", &|file, at| distinct(&file.footer, at, |chunk| chunk.encodings().to_string()));
        both("values", &|file, at| sum(&file.footer, at, |chunk| chunk.num_values()));
        both("compressed bytes", &|file, at| sum(&file.footer, at, |chunk| chunk.compressed_size()));
        both("uncompressed bytes", &|file, at| sum(&file.footer, at, |chunk| chunk.uncompressed_size()));
        both("chunks with a dictionary", &|file, at| {
            sum(&file.footer, at, |chunk| chunk.dictionary_page_offset().is_some().into())
        });
        both("chunks with a column index", &|file, at| {
            sum(&file.footer, at, |chunk| file.locations(chunk).column_index_offset.is_some().into())
        });
        both("chunks with an offset index", &|file, at| {
            sum(&file.footer, at, |chunk| file.locations(chunk).offset_index_offset.is_some().into())
        });
        both("chunks with a bloom filter", &|file, at| {
            sum(&file.footer, at, |chunk| file.locations(chunk).bloom_filter_offset.is_some().into())
        });
    }

    fn statistics_of(&mut self, path: &str, (here, there): Places, a: &OpenFile, b: &OpenFile) {
        let same_groups = a.footer.num_row_groups() == b.footer.num_row_groups()
            && a.footer.row_groups().zip(b.footer.row_groups()).all(|(a, b)| a.num_rows() == b.num_rows());
        if !same_groups {
            let with = |file: &OpenFile, at| {
                let has = |chunk: &ColumnChunk<'_>| {
                    bounds_of(file, chunk).is_some_and(|bounds| bounds.min.is_some() || bounds.max.is_some())
                };
                chunks_at(&file.footer, at).filter(has).count()
            };
            let part = |file: &OpenFile, at| {
                let (with, all) = (with(file, at), chunks_at(&file.footer, at).count());
                Some(if with == all { "all".to_owned() } else { format!("{with} of {all}") })
            };
            self.note("statistics", path, "chunks with bounds", [part(a, here), part(b, there)]);
            let nulls = |file: &OpenFile, at| {
                let mut sum = Some(0i64);
                for chunk in chunks_at(&file.footer, at) {
                    let count = bounds_of(file, &chunk).and_then(|bounds| bounds.null_count);
                    sum = sum.zip(count).map(|(sum, count)| sum.saturating_add(count));
                }
                sum.map(|sum| sum.to_string())
            };
            self.note("statistics", path, "nulls", [nulls(a, here), nulls(b, there)]);
            return;
        }
        // What differs in how many chunks, and where it does first.
        let mut found: [Found; 4] = Default::default();
        let names = ["nulls", "distinct", "min", "max"];
        for (group, (ours, theirs)) in chunks_at(&a.footer, here).zip(chunks_at(&b.footer, there)).enumerate()
        {
            let values = |file: &OpenFile, chunk: &ColumnChunk<'_>| -> [Option<String>; 4] {
                let Some(bounds) = bounds_of(file, chunk) else { return Default::default() };
                let bound = |value: Option<&crate::text::values::Value<'_>>| value.map(ToString::to_string);
                [
                    bounds.null_count.map(|count| count.to_string()),
                    bounds.distinct_count.map(|count| count.to_string()),
                    bound(bounds.min.as_ref()),
                    bound(bounds.max.as_ref()),
                ]
            };
            let sides = values(a, &ours).into_iter().zip(values(b, &theirs));
            for (found, (ours, theirs)) in found.iter_mut().zip(sides) {
                found.note(group, [ours, theirs]);
            }
        }
        for (what, Found { differing, first }) in names.into_iter().zip(found) {
            if let Some((group, sides)) = first {
                let place = among(&format!("{path}, row group {group}"), differing);
                self.note("statistics", &place, what, sides);
            }
        }
    }
}

/// A place, and in how many others the same differs.
fn among(place: &str, differing: usize) -> String {
    match differing {
        ..=1 => place.to_owned(),
        _ => format!("{place} and {} more", differing - 1),
    }
}
