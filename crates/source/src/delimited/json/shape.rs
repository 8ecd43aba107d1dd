//! The shape of the values that a sample has: scalars, structs, lists, or several of these.

use std::collections::HashMap;

use sawmill_profile::{Error, Kind as ErrorKind, Result};

use super::columns::{JsonColumn, JsonType};
use super::place::{joined, offset_in};
use super::walk::{Kind, MAX_DEPTH, content, elements, kind, members};
use crate::delimited::columns::column_type::ColumnType;
use crate::delimited::columns::formats::Formats;
use crate::delimited::columns::inference::{Candidates, Evidence, Piece, each_record};
use crate::delimited::records::dialect::Dialect;
use crate::delimited::text_file::TextFile;

/// An object with more distinct keys than this is a map, whose keys are values; it stays JSON.
const MAX_KEYS: usize = 256;
/// The same for a line: its keys are columns.
const MAX_COLUMNS: usize = 10_000;

/// The findings about a value after a part of the sample.
#[derive(Clone, Debug, Default)]
pub(in crate::delimited) struct Shape {
    /// Values that are not null.
    values: u64,
    /// How many there are of each kind.
    of_kind: [u64; 6],
    /// The types that fit all numbers, booleans and contents of strings.
    scalars: Candidates,
    texts: Candidates,
    /// The members of objects, in the order of their first appearance.
    keys: Vec<(String, Shape)>,
    places: HashMap<String, usize>,
    element: Option<Box<Shape>>,
    /// Whether it has more keys or more levels than structs may have.
    is_map: bool,
    /// A string whose escapes have no meaning.
    is_broken: bool,
    /// Where the kinds were first found to differ, or the first value.
    evidence: Option<Evidence>,
}

/// Where a value of the sample is.
#[derive(Clone, Copy)]
struct At<'a> {
    formats: &'a Formats,
    file: usize,
    /// The text, and its place in the file.
    text: &'a str,
    base: u64,
}

impl Shape {
    /// Adds a line; returns the parser's message if it is not an object.
    fn add_line(&mut self, line: &str, at: At<'_>) -> Result<(), serde_json::Error> {
        self.of_kind[Kind::Object as usize] += 1;
        self.add_members(line, at, 0, MAX_COLUMNS)
    }

    fn add_members(
        &mut self,
        text: &str,
        at: At<'_>,
        depth: usize,
        most: usize,
    ) -> Result<(), serde_json::Error> {
        members(text, |key, value| {
            let place = match self.places.get(key.as_ref()) {
                Some(place) => *place,
                None if self.keys.len() >= most => {
                    self.is_map = true;
                    return Ok(());
                }
                None => {
                    self.places.insert(key.clone().into_owned(), self.keys.len());
                    self.keys.push((key.into_owned(), Self::default()));
                    self.keys.len() - 1
                }
            };
            self.keys.get_mut(place).map_or(Ok(()), |(_, shape)| shape.add(value, at, depth + 1))
        })
    }

    fn add(&mut self, value: &str, at: At<'_>, depth: usize) -> Result<(), serde_json::Error> {
        let kind = kind(value);
        if kind == Kind::Null {
            return Ok(());
        }
        self.values += 1;
        let before = self.kinds();
        self.of_kind[kind as usize] += 1;
        let offset = at.base + offset_in(at.text, value) as u64;
        match kind {
            Kind::Null => {}
            Kind::Bool | Kind::Number => self.scalars.add(value, &Formats::default(), at.file, offset),
            Kind::String => match content(value) {
                Some(text) => self.texts.add(&text, at.formats, at.file, offset),
                None => self.is_broken = true,
            },
            Kind::Object | Kind::List if depth >= MAX_DEPTH => self.is_map = true,
            Kind::Object if self.is_map => {}
            Kind::Object => self.add_members(value, at, depth, MAX_KEYS)?,
            Kind::List => {
                let element = self.element.get_or_insert_default();
                elements(value, |value| element.add(value, at, depth + 1))?;
            }
        }
        if self.evidence.is_none() || self.kinds() != before {
            let shown = crate::delimited::records::place::shown(value.as_bytes());
            self.evidence = Some(Evidence { value: shown, file: at.file, offset });
        }
        Ok(())
    }

    /// How many kinds of values there are: numbers, strings and so on.
    fn kinds(&self) -> usize {
        self.of_kind.iter().filter(|count| **count > 0).count()
    }

    fn has(&self, kind: Kind) -> bool {
        self.of_kind[kind as usize] > 0
    }

    /// Adds what another sample says.
    pub(in crate::delimited) fn merge(&mut self, other: Self) {
        let before = self.kinds();
        self.values += other.values;
        for (count, more) in self.of_kind.iter_mut().zip(other.of_kind) {
            *count += more;
        }
        self.scalars.merge(other.scalars);
        self.texts.merge(other.texts);
        self.is_map |= other.is_map;
        self.is_broken |= other.is_broken;
        for (key, shape) in other.keys {
            match self.places.get(&key).and_then(|place| self.keys.get_mut(*place)) {
                Some((_, known)) => known.merge(shape),
                None => {
                    self.places.insert(key.clone(), self.keys.len());
                    self.keys.push((key, shape));
                }
            }
        }
        match (&mut self.element, other.element) {
            (Some(element), Some(other)) => element.merge(*other),
            (element @ None, other) => *element = other,
            (Some(_), None) => {}
        }
        if self.evidence.is_none() || self.kinds() != before {
            self.evidence = other.evidence;
        }
    }

    /// Returns the columns of lines.
    pub(in crate::delimited) fn columns(&self, formats: &Formats) -> Vec<JsonColumn> {
        self.keys
            .iter()
            .map(|(name, shape)| JsonColumn { name: name.clone(), of: shape.json_type(formats) })
            .collect()
    }

    fn json_type(&self, formats: &Formats) -> JsonType {
        let json = JsonType::Scalar(ColumnType::Json, None);
        let text = JsonType::Scalar(ColumnType::Text, Some(Kind::String));
        if self.values == 0 {
            return text;
        }
        if self.is_map || self.is_broken || self.kinds() > 1 {
            return json;
        }
        if self.has(Kind::Object) {
            // An object without keys would be a struct without fields, which no format has.
            return match self.keys.is_empty() {
                true => json,
                false => JsonType::Struct(self.columns(formats)),
            };
        }
        if self.has(Kind::List) {
            let element = self.element.as_ref().map(|element| element.json_type(formats));
            return JsonType::List(Box::new(element.unwrap_or(text)));
        }
        if self.has(Kind::String) {
            return JsonType::Scalar(self.texts.of_strings(formats), Some(Kind::String));
        }
        match self.scalars.inferred(&Formats::default()) {
            // Numbers that no type keeps: as text they would be strings.
            ColumnType::Text => json,
            of => JsonType::Scalar(of, Some(if self.has(Kind::Bool) { Kind::Bool } else { Kind::Number })),
        }
    }

    /// Returns the number of values of a key that are not null, and the value that decided.
    pub(in crate::delimited) fn evidence(&self, key: &str) -> Option<(u64, Option<Evidence>)> {
        let (_, shape) = self.places.get(key).and_then(|place| self.keys.get(*place))?;
        let of_scalars = match shape.kinds() {
            1 if shape.has(Kind::String) => shape.texts.evidence.clone(),
            1 => shape.scalars.evidence.clone(),
            _ => None,
        };
        Some((shape.values, of_scalars.or_else(|| shape.evidence.clone())))
    }

    pub(in crate::delimited) fn is_too_wide(&self) -> bool {
        self.is_map
    }
}

/// Looks at a piece of a file's lines.
pub(in crate::delimited) fn sampled(file: &TextFile, piece: Piece, dialect: &Dialect) -> Result<Shape> {
    let mut shape = Shape::default();
    each_record(file, piece, |text, cells, base| {
        let at = At { formats: &dialect.formats, file: piece.file, text, base };
        for cell in cells {
            let line = &text[cell.start as usize..cell.end as usize];
            let added = shape.add_line(line, at);
            // It is left out later.
            if file.splitter.lenient {
                continue;
            }
            added.map_err(|error| {
                let place = base + u64::from(cell.start) + error.column().saturating_sub(1) as u64;
                let advice = match line.trim_start().starts_with('[') {
                    true => "make a line of each object in the list first: jq -c '.[]'",
                    false => "correct the line; each line is one object",
                };
                Error::new(ErrorKind::Source, format!("the line is not a JSON object: {}", plain(&error)))
                    .at(file.place(place))
                    .advise(advice)
            })?;
        }
        Ok(())
    })?;
    Ok(shape)
}

/// Returns the parser's message without the place, which counts within the line.
pub(super) fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
}

/// Gives some columns other types, by paths such as `user.tags[]`.
pub(in crate::delimited) fn retype(
    columns: &mut Vec<JsonColumn>,
    path: &str,
    of: ColumnType,
) -> std::result::Result<(), ()> {
    // The longest key that begins the path is meant: keys may have points in them.
    let found = columns.iter_mut().filter(|column| {
        path.strip_prefix(column.name.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    });
    let Some(column) = found.max_by_key(|column| column.name.len()) else {
        columns.push(JsonColumn { name: path.to_owned(), of: JsonType::Scalar(of, None) });
        return Ok(());
    };
    let mut rest = &path[column.name.len()..];
    let mut at = &mut column.of;
    while let Some(inner) = rest.strip_prefix("[]") {
        let JsonType::List(element) = at else { return Err(()) };
        (at, rest) = (element, inner);
    }
    match (rest.strip_prefix('.'), at) {
        (None, at) if rest.is_empty() => {
            *at = JsonType::Scalar(of, None);
            Ok(())
        }
        (Some(inner), JsonType::Struct(fields)) => retype(fields, inner, of),
        _ => Err(()),
    }
}

/// Returns the paths of all scalars, for messages.
pub(in crate::delimited) fn paths(columns: &[JsonColumn], before: &str) -> Vec<String> {
    let mut found = Vec::new();
    for column in columns {
        let mut path = joined(before, &column.name);
        let mut of = &column.of;
        while let JsonType::List(element) = of {
            path += "[]";
            of = element;
        }
        match of {
            JsonType::Struct(fields) => found.extend(paths(fields, &path)),
            JsonType::Scalar(..) | JsonType::List(_) => found.push(path),
        }
    }
    found
}
