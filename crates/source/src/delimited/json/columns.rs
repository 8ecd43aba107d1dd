//! Lines become columns: scalars, structs and lists.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, ListArray, StringArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields};

use super::place::{Misfit, Wrong, joined, offset_in};
use super::shape::plain;
use super::walk::{Kind, content, elements, kind, members};
use crate::delimited::columns::arrays::{Part, Texts};
use crate::delimited::columns::column_type::ColumnType;
use crate::delimited::columns::formats::Formats;
use crate::delimited::columns::late::Typing;
use crate::delimited::records::splitter::Cell;

/// A key of the lines, or of objects within them, and the type of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::delimited) struct JsonColumn {
    pub name: String,
    pub of: JsonType,
}

/// The type of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::delimited) enum JsonType {
    /// Its values, and their kind if a sample gave the type. Values of another kind are not of the type then.
    Scalar(ColumnType, Option<Kind>),
    Struct(Vec<JsonColumn>),
    List(Box<JsonType>),
}

impl JsonType {
    /// Returns the field of a column, or of a part of one.
    pub(in crate::delimited) fn field(&self, name: &str) -> Field {
        match self {
            Self::Scalar(of, _) => of.field(name),
            nested => Field::new(name, nested.data_type(), true),
        }
    }

    /// Text within structs and lists is not in views, which fewer readers of nested columns know.
    fn inner_field(&self, name: &str) -> Field {
        let field = self.field(name);
        match field.data_type() {
            DataType::Utf8View => field.with_data_type(DataType::Utf8),
            _ => field,
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Scalar(of, _) => of.data_type(),
            Self::Struct(columns) => DataType::Struct(Self::fields(columns)),
            Self::List(element) => DataType::List(Arc::new(element.inner_field("item"))),
        }
    }

    fn fields(columns: &[JsonColumn]) -> Fields {
        columns.iter().map(|column| column.of.inner_field(&column.name)).collect()
    }
}

impl fmt::Display for JsonType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(of, _) => of.fmt(f),
            Self::List(element) => write!(f, "list({element})"),
            Self::Struct(columns) => {
                f.write_str("struct(")?;
                for (at, column) in columns.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}{} {}", column.name, column.of)?;
                }
                f.write_str(")")
            }
        }
    }
}

/// Decodes lines, which are ranges of a text, into the arrays of the wanted columns. The others are checked for
/// their keys alone.
///
/// # Errors
/// The first line, in the order of the columns, that does not fit.
pub(in crate::delimited) fn decode(
    text: &str,
    lines: &[Cell],
    columns: &[JsonColumn],
    is_wanted: &[bool],
    formats: &Formats,
) -> Result<Vec<Option<ArrayRef>>, Misfit> {
    let mut members_of = Struct::new(columns);
    for (column, is_wanted) in members_of.columns.iter_mut().zip(is_wanted) {
        if !is_wanted {
            *column = Collector::Skipped(0);
        }
    }
    let reading = Reading { text, formats };
    for line in lines {
        let line = &text[line.start as usize..line.end as usize];
        members_of.add(line, &reading).map_err(|unread| match unread {
            Unread::Misfit(misfit) => misfit,
            Unread::Syntax(error) => Misfit {
                at: offset_in(text, line) + error.column().saturating_sub(1),
                path: String::new(),
                what: Wrong::Syntax(plain(&error)),
            },
        })?;
    }
    let arrays = columns.iter().zip(members_of.columns).map(|(column, collected)| match collected {
        Collector::Skipped(_) => Ok(None),
        collected => collected.finish(&column.of, &column.name, &reading).map(Some),
    });
    arrays.collect()
}

struct Reading<'t> {
    text: &'t str,
    formats: &'t Formats,
}

/// A misfit, or the parser's error for a line.
enum Unread {
    Misfit(Misfit),
    Syntax(serde_json::Error),
}

impl From<serde_json::Error> for Unread {
    fn from(error: serde_json::Error) -> Self {
        Self::Syntax(error)
    }
}

/// The values of a column, as written; `None` for null.
enum Collector<'t> {
    Scalar(Vec<Option<&'t str>>),
    Struct(Struct<'t>),
    List {
        element: Box<Collector<'t>>,
        elements: usize,
        lengths: Vec<usize>,
        valid: Vec<bool>,
    },
    /// The number of values of a column that is not wanted.
    Skipped(usize),
}

struct Struct<'t> {
    names: Vec<String>,
    places: HashMap<String, usize>,
    columns: Vec<Collector<'t>>,
    valid: Vec<bool>,
}

impl<'t> Struct<'t> {
    fn new(columns: &[JsonColumn]) -> Self {
        Self {
            names: columns.iter().map(|column| column.name.clone()).collect(),
            places: columns.iter().enumerate().map(|(at, column)| (column.name.clone(), at)).collect(),
            columns: columns.iter().map(|column| Collector::new(&column.of)).collect(),
            valid: Vec::new(),
        }
    }

    /// Adds an object.
    fn add(&mut self, object: &'t str, reading: &Reading<'t>) -> Result<(), Unread> {
        let row = self.valid.len();
        let mut next = 0;
        members(object, |key, value| self.member(&key, value, row, &mut next, reading))?;
        self.valid.push(true);
        for column in &mut self.columns {
            if column.len() == row {
                column.add_null();
            }
        }
        Ok(())
    }

    /// Adds a member. Keys mostly come in the order of the columns.
    fn member(
        &mut self,
        key: &str,
        value: &'t str,
        row: usize,
        next: &mut usize,
        reading: &Reading<'t>,
    ) -> Result<(), Unread> {
        let misfit = |what| {
            let at = offset_in(reading.text, value);
            Err(Unread::Misfit(Misfit { at, path: key.to_owned(), what }))
        };
        let expected = self.names.get(*next).is_some_and(|name| name == key);
        let place = if expected { Some(*next) } else { self.places.get(key).copied() };
        let Some((place, column)) = place.and_then(|place| Some((place, self.columns.get_mut(place)?)))
        else {
            return misfit(Wrong::UnknownKey);
        };
        if column.len() != row {
            return misfit(Wrong::TwoKeys);
        }
        *next = place + 1;
        column.add(value, reading).map_err(|unread| match unread {
            Unread::Misfit(misfit) => {
                let path = match misfit.path.starts_with("[]") {
                    true => format!("{key}{}", misfit.path),
                    false if misfit.path.is_empty() => key.to_owned(),
                    false => joined(key, &misfit.path),
                };
                Unread::Misfit(Misfit { path, ..misfit })
            }
            syntax => syntax,
        })
    }

    fn add_null(&mut self) {
        self.valid.push(false);
        self.columns.iter_mut().for_each(Collector::add_null);
    }
}

impl<'t> Collector<'t> {
    fn new(of: &JsonType) -> Self {
        match of {
            JsonType::Scalar(..) => Self::Scalar(Vec::new()),
            JsonType::Struct(columns) => Self::Struct(Struct::new(columns)),
            JsonType::List(element) => Self::List {
                element: Box::new(Self::new(element)),
                elements: 0,
                lengths: Vec::new(),
                valid: Vec::new(),
            },
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Scalar(values) => values.len(),
            Self::Struct(of) => of.valid.len(),
            Self::List { valid, .. } => valid.len(),
            Self::Skipped(count) => *count,
        }
    }

    fn add_null(&mut self) {
        match self {
            Self::Scalar(values) => values.push(None),
            Self::Struct(of) => of.add_null(),
            Self::List { lengths, valid, .. } => {
                lengths.push(0);
                valid.push(false);
            }
            Self::Skipped(count) => *count += 1,
        }
    }

    fn add(&mut self, value: &'t str, reading: &Reading<'t>) -> Result<(), Unread> {
        let kind = kind(value);
        if kind == Kind::Null {
            self.add_null();
            return Ok(());
        }
        let wrong = |wanted: &str| {
            let what = Wrong::Value {
                value: crate::delimited::records::place::shown(value.as_bytes()),
                wanted: wanted.to_owned(),
                inferred: true,
            };
            Err(Unread::Misfit(Misfit { at: offset_in(reading.text, value), path: String::new(), what }))
        };
        match self {
            Self::Skipped(count) => *count += 1,
            Self::Scalar(values) => values.push(Some(value)),
            Self::Struct(of) if kind == Kind::Object => of.add(value, reading)?,
            Self::Struct(_) => return wrong("struct"),
            Self::List { element, elements: count, lengths, valid } if kind == Kind::List => {
                let before = *count;
                let added = elements(value, |value| {
                    *count += 1;
                    element.add(value, reading)
                });
                added.map_err(|unread| match unread {
                    Unread::Misfit(misfit) => {
                        let dot =
                            if misfit.path.is_empty() || misfit.path.starts_with('[') { "" } else { "." };
                        Unread::Misfit(Misfit { path: format!("[]{dot}{}", misfit.path), ..misfit })
                    }
                    syntax => syntax,
                })?;
                lengths.push(*count - before);
                valid.push(true);
            }
            Self::List { .. } => return wrong("list"),
        }
        Ok(())
    }

    /// Returns the array. `path` leads to its values.
    fn finish(self, of: &JsonType, path: &str, reading: &Reading<'t>) -> Result<ArrayRef, Misfit> {
        match (self, of) {
            (Self::Scalar(values), JsonType::Scalar(of, kind)) => scalars(&values, *of, *kind, path, reading),
            (Self::Struct(collected), JsonType::Struct(columns)) => {
                let arrays = collected.columns.into_iter().zip(columns).map(|(collected, column)| {
                    collected.finish(&column.of, &joined(path, &column.name), reading).map(without_view)
                });
                let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
                let array = StructArray::try_new(JsonType::fields(columns), arrays, nulls(&collected.valid));
                array.map(|array| Arc::new(array) as ArrayRef).map_err(|error| unexpected(path, &error))
            }
            (Self::List { element, lengths, valid, .. }, JsonType::List(of)) => {
                let values = without_view(element.finish(of, &format!("{path}[]"), reading)?);
                let field = Arc::new(of.inner_field("item"));
                let offsets = OffsetBuffer::from_lengths(lengths);
                let array = ListArray::try_new(field, offsets, values, nulls(&valid));
                array.map(|array| Arc::new(array) as ArrayRef).map_err(|error| unexpected(path, &error))
            }
            (_, of) => Err(unexpected(
                path,
                &format!("the values of a column of type {of} were collected otherwise"),
            )),
        }
    }
}

fn unexpected(path: &str, error: &dyn fmt::Display) -> Misfit {
    Misfit { at: 0, path: path.to_owned(), what: Wrong::Syntax(error.to_string()) }
}

fn nulls(valid: &[bool]) -> Option<NullBuffer> {
    valid.contains(&false).then(|| NullBuffer::from(valid))
}

fn without_view(array: ArrayRef) -> ArrayRef {
    match array.as_string_view_opt() {
        Some(views) => Arc::new(views.iter().collect::<StringArray>()),
        None => array,
    }
}

/// Returns the array of values, as written.
fn scalars(
    values: &[Option<&str>],
    of: ColumnType,
    sampled: Option<Kind>,
    path: &str,
    reading: &Reading<'_>,
) -> Result<ArrayRef, Misfit> {
    let wrong = |row: usize| {
        let value = values.get(row).copied().flatten().unwrap_or_default();
        let shown = crate::delimited::records::place::shown(value.as_bytes());
        let what = Wrong::Value { value: shown, wanted: of.to_string(), inferred: sampled.is_some() };
        Misfit { at: offset_in(reading.text, value), path: path.to_owned(), what }
    };
    let has_other_kind = |value: &str| match kind(value) {
        other if sampled.is_some_and(|sampled| sampled != other) => true,
        Kind::Object | Kind::List => true,
        Kind::String => content(value).is_none(),
        Kind::Null | Kind::Bool | Kind::Number => false,
    };
    let is_json = of == ColumnType::Json;
    if !is_json && let Some(row) = values.iter().position(|value| value.is_some_and(has_other_kind)) {
        return Err(wrong(row));
    }
    // The parser of the line has checked its values.
    let of_texts = if is_json { ColumnType::Text } else { of };
    let typing = Typing { of: of_texts, inferred: sampled.is_some() };
    typing.array(&JsonTexts { values, is_json }, reading.formats).map_err(wrong)
}

/// The values of a column, as written.
struct JsonTexts<'t> {
    values: &'t [Option<&'t str>],
    /// Whether strings keep their quotes.
    is_json: bool,
}

impl Texts for JsonTexts<'_> {
    fn rows(&self) -> usize {
        self.values.len()
    }

    fn try_each(
        &self,
        mut each: impl FnMut(usize, Option<Part<'_>>) -> Result<(), usize>,
    ) -> Result<(), usize> {
        for (row, value) in self.values.iter().enumerate() {
            let text = value.and_then(|value| match kind(value) {
                Kind::String if !self.is_json => content(value),
                _ => Some(Cow::Borrowed(value)),
            });
            each(row, text.as_deref().map(Part::new))?;
        }
        Ok(())
    }
}
