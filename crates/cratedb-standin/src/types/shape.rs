//! Shapes as GeoJSON (`GeoJSONUtils.validateGeoJson`, and what the builders of shapes check while the row is indexed).
//!
//! Well-known text, which the real server turns into GeoJSON, is refused.

use super::cast::{Refused, untyped};
use super::{Type, Value};
use crate::json::Json;

impl Type {
    /// Takes a shape, which is stored as it is.
    pub(super) fn shape(&self, json: &Json) -> Result<Value, Refused> {
        let indexed = is_shape(json).ok_or_else(|| self.refuse(json))?;
        if indexed {
            Ok(untyped(json))
        } else {
            Err(Refused::Row(4000, "SQLParseException[Cannot convert GeoJSON to shape]".to_owned()))
        }
    }
}

fn member<'a>(members: &'a [(String, Json)], name: &str) -> Option<&'a Json> {
    members.iter().find(|(member, _)| member == name).map(|(_, json)| json)
}

/// Whether a valid shape can be indexed; `None` if it is not valid.
fn is_shape(json: &Json) -> Option<bool> {
    let Json::Object(members) = json else { return None };
    let Json::Text(kind) = member(members, "type")? else { return None };
    let (depth, positions, closed) = match kind.as_str() {
        "Point" | "point" => (0, 0, false),
        "MultiPoint" | "multipoint" => (1, 0, false),
        "LineString" | "linestring" => (1, 2, false),
        "MultiLineString" | "multilinestring" => (2, 2, false),
        "Polygon" | "polygon" => (2, 4, true),
        "MultiPolygon" | "multipolygon" => (3, 4, true),
        "GeometryCollection" | "geometrycollection" => {
            let Json::Array(parts) = member(members, "geometries")? else { return None };
            let indexed: Vec<bool> = parts.iter().map(is_shape).collect::<Option<_>>()?;
            return Some(indexed.into_iter().all(|indexed| indexed));
        }
        _ => return None,
    };
    let mut lines = Vec::new();
    positions_in(member(members, "coordinates")?, depth, &mut lines)?;
    Some(lines.iter().all(|line| line.len() >= positions && !(closed && line.first() != line.last())))
}

/// Collects the lists of positions.
fn positions_in<'a>(json: &'a Json, depth: usize, lines: &mut Vec<&'a [Json]>) -> Option<()> {
    let Json::Array(items) = json else { return None };
    match depth {
        0 => return is_position(items).then_some(()),
        1 => lines.push(items),
        _ => {}
    }
    items.iter().try_for_each(|item| positions_in(item, depth - 1, lines))
}

/// Further coordinates are stored, too.
fn is_position(items: &[Json]) -> bool {
    let number = |at: usize| match items.get(at) {
        Some(Json::Number(text)) => text.parse::<f64>().unwrap_or(f64::NAN),
        _ => f64::NAN,
    };
    (-180.0..=180.0).contains(&number(0)) && (-90.0..=90.0).contains(&number(1))
}
