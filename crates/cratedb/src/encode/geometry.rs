//! Shapes with longitudes and latitudes (WGS 84): read from well-known text, well-known binary (both OGC 06-103r4) and
//! GeoJSON (RFC 7946), written as GeoJSON, which the server stores unchanged.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::encode::json;

/// A shape.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Geometry {
    Single(Kind, Coordinates),
    Collection(Vec<Geometry>),
}

/// Positions, nested as deep as the kind of shape asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Coordinates {
    Position([f64; 2]),
    List(Vec<Coordinates>),
}

/// A kind of shape. Well-known binary numbers them in this order, from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Point,
    LineString,
    Polygon,
    MultiPoint,
    MultiLineString,
    MultiPolygon,
}

const COLLECTION: &str = "GeometryCollection";
/// Shapes within shapes, so that no input exhausts the stack.
const MAX_DEPTH: usize = 32;

impl Kind {
    const ALL: [Self; 6] = [
        Self::Point,
        Self::LineString,
        Self::Polygon,
        Self::MultiPoint,
        Self::MultiLineString,
        Self::MultiPolygon,
    ];

    fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| word.eq_ignore_ascii_case(&kind.name()))
    }

    /// As GeoJSON writes it.
    fn name(self) -> String {
        format!("{self:?}")
    }

    /// The levels of lists around a position.
    fn depth(self) -> usize {
        match self {
            Self::Point => 0,
            Self::LineString | Self::MultiPoint => 1,
            Self::Polygon | Self::MultiLineString => 2,
            Self::MultiPolygon => 3,
        }
    }

    /// The kind of the shapes that this one consists of in well-known binary.
    fn part(self) -> Option<Self> {
        match self {
            Self::MultiPoint => Some(Self::Point),
            Self::MultiLineString => Some(Self::LineString),
            Self::MultiPolygon => Some(Self::Polygon),
            Self::Point | Self::LineString | Self::Polygon => None,
        }
    }
}

impl Geometry {
    /// Reads GeoJSON, or well-known text of two coordinates.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.starts_with('{') {
            return Self::from_json(text);
        }
        let rest = match text.split_once(';') {
            Some((system, rest)) => system.eq_ignore_ascii_case("SRID=4326").then_some(rest)?,
            None => text,
        };
        let mut words = Words { rest };
        let geometry = words.geometry(MAX_DEPTH)?;
        words.rest.trim().is_empty().then_some(geometry)
    }

    /// Reads GeoJSON. Members without a part in the shape are left out.
    pub(crate) fn from_json(text: &str) -> Option<Self> {
        json_geometry(text, MAX_DEPTH)
    }

    /// Reads well-known binary of two coordinates.
    pub(crate) fn from_wkb(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Bytes(bytes);
        let geometry = bytes.geometry(MAX_DEPTH)?;
        bytes.0.is_empty().then_some(geometry)
    }

    /// The position of a point.
    pub(crate) fn into_point(self) -> Option<[f64; 2]> {
        match self {
            Self::Single(Kind::Point, Coordinates::Position(position)) => Some(position),
            _ => None,
        }
    }

    /// Refuses what the server would refuse, or could not index.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Single(kind, coordinates) => coordinates.check(*kind),
            Self::Collection(parts) if parts.is_empty() => Err("the shape is empty".to_owned()),
            Self::Collection(parts) => parts.iter().try_for_each(Self::check),
        }
    }

    /// Appends the shape as GeoJSON.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Single(kind, coordinates) => {
                out.extend_from_slice(format!("{{\"type\":\"{}\",\"coordinates\":", kind.name()).as_bytes());
                coordinates.write(out);
            }
            Self::Collection(parts) => {
                out.extend_from_slice(format!("{{\"type\":\"{COLLECTION}\",\"geometries\":").as_bytes());
                write_list(parts, out, Self::write);
            }
        }
        out.push(b'}');
    }
}

impl Coordinates {
    /// Reads JSON of nested arrays.
    fn from_json(text: &str, depth: usize) -> Option<Self> {
        let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
        match (items.as_slice(), depth.checked_sub(1)) {
            ([x, y], None) => Some(Self::Position([x.get().parse().ok()?, y.get().parse().ok()?])),
            (_, None) => None,
            (items, Some(inner)) => {
                let items = items.iter().map(|item| Self::from_json(item.get(), inner));
                Some(Self::List(items.collect::<Option<_>>()?))
            }
        }
    }

    fn check(&self, kind: Kind) -> Result<(), String> {
        let items = match self {
            Self::Position(position) => return on_globe(*position),
            Self::List(items) => items,
        };
        let (first, last) = (items.first(), items.last());
        match (first, kind) {
            (None, _) => return Err("the shape, or a part of it, is empty".to_owned()),
            (Some(Self::Position(_)), Kind::LineString | Kind::MultiLineString) if items.len() < 2 => {
                return Err("a line of the shape has one position".to_owned());
            }
            (Some(Self::Position(_)), Kind::Polygon | Kind::MultiPolygon)
                if items.len() < 4 || first != last =>
            {
                return Err("a ring of the polygon is not closed, or has fewer than 4 positions".to_owned());
            }
            _ => {}
        }
        items.iter().try_for_each(|item| item.check(kind))
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Position(position) => write_position(*position, out),
            Self::List(items) => write_list(items, out, Self::write),
        }
    }
}

/// Reads the position of a point from text of any form, or from `[x, y]`, which the server takes too.
pub(crate) fn point_from_text(text: &str) -> Option<[f64; 2]> {
    match text.trim_start().starts_with('[') {
        true => Geometry::Single(Kind::Point, Coordinates::from_json(text, 0)?).into_point(),
        false => Geometry::from_text(text)?.into_point(),
    }
}

/// Refuses a position off the globe.
pub(crate) fn on_globe([x, y]: [f64; 2]) -> Result<(), String> {
    match (-180.0..=180.0).contains(&x) && (-90.0..=90.0).contains(&y) {
        true => Ok(()),
        false => Err(format!("a position has the longitude {x} and the latitude {y}")),
    }
}

/// Appends `[x,y]`.
pub(crate) fn write_position([x, y]: [f64; 2], out: &mut Vec<u8>) {
    write_list(&[x, y], out, |number, out| json::write_float(*number, out));
}

fn write_list<T>(items: &[T], out: &mut Vec<u8>, write: impl Fn(&T, &mut Vec<u8>)) {
    out.push(b'[');
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

fn json_geometry(text: &str, depth: usize) -> Option<Geometry> {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
        #[serde(borrow)]
        coordinates: Option<&'a RawValue>,
        #[serde(borrow)]
        geometries: Option<Vec<&'a RawValue>>,
    }
    let object: Object<'_> = serde_json::from_str(text).ok()?;
    if object.kind.eq_ignore_ascii_case(COLLECTION) {
        let depth = depth.checked_sub(1)?;
        let parts = object.geometries?.into_iter().map(|part| json_geometry(part.get(), depth));
        return Some(Geometry::Collection(parts.collect::<Option<_>>()?));
    }
    let kind = Kind::named(&object.kind)?;
    Some(Geometry::Single(kind, Coordinates::from_json(object.coordinates?.get(), kind.depth())?))
}

/// The rest of well-known text.
struct Words<'a> {
    rest: &'a str,
}

impl Words<'_> {
    fn geometry(&mut self, depth: usize) -> Option<Geometry> {
        let word = self.run(|c| c.is_ascii_alphabetic()).to_owned();
        if word.eq_ignore_ascii_case(COLLECTION) {
            let depth = depth.checked_sub(1)?;
            return Some(Geometry::Collection(self.list(|words| words.geometry(depth))?));
        }
        let kind = Kind::named(&word)?;
        let coordinates = match kind {
            Kind::Point => self.in_parentheses()?,
            // With or without parentheses around each point.
            Kind::MultiPoint => Coordinates::List(self.list(|words| match words.rest.trim_start() {
                rest if rest.starts_with('(') => words.in_parentheses(),
                _ => words.coordinates(0),
            })?),
            other => self.coordinates(other.depth())?,
        };
        Some(Geometry::Single(kind, coordinates))
    }

    fn coordinates(&mut self, depth: usize) -> Option<Coordinates> {
        match depth.checked_sub(1) {
            Some(inner) => self.list(|words| words.coordinates(inner)).map(Coordinates::List),
            None => Some(Coordinates::Position([self.number()?, self.number()?])),
        }
    }

    fn in_parentheses(&mut self) -> Option<Coordinates> {
        let position = self.sign('(').then(|| self.coordinates(0))??;
        self.sign(')').then_some(position)
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = vec![self.sign('(').then(|| item(self))??];
        while self.sign(',') {
            items.push(item(self)?);
        }
        self.sign(')').then_some(items)
    }

    fn number(&mut self) -> Option<f64> {
        self.run(|c| !c.is_whitespace() && !matches!(c, ',' | '(' | ')')).parse().ok()
    }

    fn sign(&mut self, sign: char) -> bool {
        let rest = self.rest.trim_start().strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn run(&mut self, belongs: impl Fn(char) -> bool) -> &str {
        let rest = self.rest.trim_start();
        let (run, rest) = rest.split_at(rest.find(|c| !belongs(c)).unwrap_or(rest.len()));
        self.rest = rest;
        run
    }
}

/// The rest of well-known binary.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn geometry(&mut self, depth: usize) -> Option<Geometry> {
        /// PostGIS says by this flag that the number of the reference system follows.
        const HAS_SYSTEM: u32 = 0x2000_0000;
        let little = match self.take::<1>()? {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        let depth = depth.checked_sub(1)?;
        let mut number = self.number(little)?;
        if number & HAS_SYSTEM != 0 {
            number ^= HAS_SYSTEM;
            matches!(self.number(little)?, 0 | 4326).then_some(())?;
        }
        if number == 7 {
            return Some(Geometry::Collection(self.list(little, |bytes| bytes.geometry(depth))?));
        }
        let kind = *Kind::ALL.get(usize::try_from(number).ok()?.checked_sub(1)?)?;
        let coordinates = match kind.part() {
            None => self.coordinates(little, kind.depth())?,
            Some(part) => Coordinates::List(self.list(little, |bytes| match bytes.geometry(depth)? {
                Geometry::Single(found, coordinates) if found == part => Some(coordinates),
                _ => None,
            })?),
        };
        Some(Geometry::Single(kind, coordinates))
    }

    fn coordinates(&mut self, little: bool, depth: usize) -> Option<Coordinates> {
        match depth.checked_sub(1) {
            Some(inner) => self.list(little, |bytes| bytes.coordinates(little, inner)).map(Coordinates::List),
            None => Some(Coordinates::Position([self.double(little)?, self.double(little)?])),
        }
    }

    /// The count is not trusted: each item takes at least one byte, and they end with the bytes.
    fn list<T>(&mut self, little: bool, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number(little)?;
        (0..count).map(|_| item(self)).collect()
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn number(&mut self, little: bool) -> Option<u32> {
        self.take().map(if little { u32::from_le_bytes } else { u32::from_be_bytes })
    }

    fn double(&mut self, little: bool) -> Option<f64> {
        self.take().map(if little { f64::from_le_bytes } else { f64::from_be_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(geometry: Option<Geometry>) -> Option<String> {
        let mut out = Vec::new();
        geometry?.write(&mut out);
        Some(String::from_utf8(out).unwrap())
    }

    /// Each kind as text, and its coordinates as GeoJSON.
    const SHAPES: [(&str, &str, &str); 6] = [
        ("Point", "POINT (7.1 -50)", "[7.1,-50.0]"),
        ("LineString", "linestring(0 0,1 1 , 2 1e-10)", "[[0.0,0.0],[1.0,1.0],[2.0,1e-10]]"),
        (
            "Polygon",
            "POLYGON ((0 0, 4 0, 4 4, 0 0), (1 0.5, 2 1, 2 0.5, 1 0.5))",
            "[[[0.0,0.0],[4.0,0.0],[4.0,4.0],[0.0,0.0]],[[1.0,0.5],[2.0,1.0],[2.0,0.5],[1.0,0.5]]]",
        ),
        ("MultiPoint", "MULTIPOINT ((1 2), (3 4))", "[[1.0,2.0],[3.0,4.0]]"),
        (
            "MultiLineString",
            "MULTILINESTRING ((0 0, 1 1), (2 2, 3 3))",
            "[[[0.0,0.0],[1.0,1.0]],[[2.0,2.0],[3.0,3.0]]]",
        ),
        (
            "MultiPolygon",
            "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))",
            "[[[[0.0,0.0],[1.0,0.0],[1.0,1.0],[0.0,0.0]]]]",
        ),
    ];

    fn json(kind: &str, coordinates: &str) -> String {
        format!("{{\"type\":\"{kind}\",\"coordinates\":{coordinates}}}")
    }

    /// Well-known binary of this byte order.
    fn wkb(geometry: &Geometry, little: bool) -> Vec<u8> {
        let number = |n: u32| if little { n.to_le_bytes() } else { n.to_be_bytes() };
        let mut out = vec![u8::from(little)];
        match geometry {
            Geometry::Collection(parts) => {
                out.extend([number(7), number(parts.len() as u32)].concat());
                parts.iter().for_each(|part| out.extend(wkb(part, little)));
            }
            Geometry::Single(kind, coordinates) => {
                let code = Kind::ALL.iter().position(|other| other == kind).unwrap() as u32 + 1;
                out.extend(number(code));
                push(&mut out, coordinates, kind.part(), little);
            }
        }
        out
    }

    fn push(out: &mut Vec<u8>, coordinates: &Coordinates, part: Option<Kind>, little: bool) {
        match coordinates {
            Coordinates::Position(numbers) => {
                for number in numbers {
                    out.extend(if little { number.to_le_bytes() } else { number.to_be_bytes() });
                }
            }
            Coordinates::List(items) => {
                let count = items.len() as u32;
                out.extend(if little { count.to_le_bytes() } else { count.to_be_bytes() });
                for item in items {
                    match part {
                        Some(part) => out.extend(wkb(&Geometry::Single(part, item.clone()), little)),
                        None => push(out, item, None, little),
                    }
                }
            }
        }
    }

    #[test]
    fn every_kind_is_read_from_text_json_and_bytes_to_one_form() {
        let mut all = Vec::new();
        for (kind, text, coordinates) in SHAPES {
            let expected = json(kind, coordinates);
            let geometry = Geometry::from_text(text).unwrap();
            assert_eq!(written(Some(geometry.clone())), Some(expected.clone()), "{text}");
            assert_eq!(Geometry::from_json(&expected), Some(geometry.clone()));
            assert_eq!(geometry.check(), Ok(()));
            all.push(geometry);
        }
        all.push(Geometry::Collection(all.clone()));
        for geometry in &all {
            for bytes in [wkb(geometry, true), wkb(geometry, false)] {
                assert_eq!(Geometry::from_wkb(&bytes).as_ref(), Some(geometry));
                (0..bytes.len()).for_each(|end| assert_eq!(Geometry::from_wkb(&bytes[..end]), None));
                assert_eq!(Geometry::from_wkb(&[&bytes[..], &[0]].concat()), None);
            }
        }
        let texts = SHAPES.map(|(_, text, _)| text).join(", ");
        assert_eq!(Geometry::from_text(&format!("GEOMETRYCOLLECTION ({texts})")).as_ref(), all.last());
        assert_eq!(Geometry::from_text(&written(all.last().cloned()).unwrap()).as_ref(), all.last());
    }

    #[test]
    fn other_spellings_are_the_same_and_other_dimensions_and_systems_are_refused() {
        let point = Some(json("Point", "[1.0,2.0]"));
        for text in [
            "SRID=4326;POINT(1 2)",
            r#" {"coordinates": [1, 2e0], "type": "point", "crs": {"type": "name"}} "#,
            r#"{"type":"Point","bbox":[1,2,1,2],"coordinates":[1.0,2]}"#,
        ] {
            assert_eq!(written(Geometry::from_text(text)), point, "{text}");
        }
        assert_eq!(
            written(Geometry::from_text("MULTIPOINT (1 2, 3 4)")),
            Some(json("MultiPoint", "[[1.0,2.0],[3.0,4.0]]"))
        );
        for text in [
            "",
            "POINT",
            "POINT EMPTY",
            "POINT Z (1 2 3)",
            "POINT (1 2 3)",
            "POINT (1, 2)",
            "POINT (1 2) x",
            "SRID=3857;POINT (1 2)",
            "POLYGON (0 0, 1 1)",
            "CIRCLE (0 0, 1 1)",
            "é",
            "{}",
            r#"{"type":"Point","coordinates":[1,2,3]}"#,
            r#"{"type":"Point","coordinates":[1,null]}"#,
            r#"{"type":"Polygon","coordinates":[[1,2],[3,4]]}"#,
            r#"{"type":"GeometryCollection","coordinates":[]}"#,
            r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]}}"#,
        ] {
            assert_eq!(Geometry::from_text(text), None, "{text}");
        }
        let flagged = |system: u32| {
            let numbers = [0x2000_0001u32.to_le_bytes(), system.to_le_bytes()].concat();
            [&[1][..], &numbers, &1f64.to_le_bytes(), &2f64.to_le_bytes()].concat()
        };
        assert_eq!(written(Geometry::from_wkb(&flagged(4326))), point);
        assert_eq!(Geometry::from_wkb(&flagged(3857)), None);
        // With a third coordinate, by both conventions.
        for number in [1001u32, 0x8000_0001] {
            let bytes = [&[1][..], &number.to_le_bytes(), &[0; 24]].concat();
            assert_eq!(Geometry::from_wkb(&bytes), None);
        }
        // As many shapes within each other as the bytes have.
        assert_eq!(Geometry::from_wkb(&[1u8, 4, 0, 0, 0, 1, 0, 0, 0].repeat(100_000)), None);
    }

    #[test]
    fn shapes_that_the_server_could_not_index_are_refused() {
        for (text, expected) in [
            ("POINT (180.5 1)", "longitude 180.5"),
            ("MULTIPOINT (1 1, 1 -91)", "latitude -91"),
            ("POINT (nan 1)", "longitude NaN"),
            ("LINESTRING (1 1)", "one position"),
            ("POLYGON ((0 0, 1 0, 0 0))", "fewer than 4"),
            ("POLYGON ((0 0, 1 0, 1 1, 0 1))", "not closed"),
            (r#"{"type":"MultiPoint","coordinates":[]}"#, "is empty"),
            (r#"{"type":"GeometryCollection","geometries":[]}"#, "is empty"),
        ] {
            let refused = Geometry::from_text(text).unwrap().check().unwrap_err();
            assert!(refused.contains(expected), "{text}: {refused}");
        }
    }

    #[test]
    fn points_are_read_from_text() {
        for text in ["POINT (7.1 -50.7)", " point(7.1  -50.7) ", "[7.1, -50.7]", "POINT ( 7.1 -50.7 )"] {
            assert_eq!(point_from_text(text), Some([7.1, -50.7]), "{text}");
        }
        for text in ["", "POINT", "POINT (1)", "LINE (1 2)", "[1 2]", "[1, 2, 3]", "LINESTRING (1 2, 3 4)"] {
            assert_eq!(point_from_text(text), None, "{text}");
        }
    }
}
