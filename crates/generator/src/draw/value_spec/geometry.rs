//! Points and polygons in the plane, as well-known binary (WKB, OGC 06-103r4): byte order, kind of shape, coordinates.

use crate::error::Result;
use crate::random::rng::{Sequence, unit_interval};
use crate::spec_file::toml_reader::{SpecNode, SpecTable};
use crate::types::logical_type::LogicalType;

/// Little-endian byte order.
const LITTLE_ENDIAN: u8 = 1;
const POINT: u32 = 1;
const POLYGON: u32 = 3;

/// The most corners of a polygon.
const MAX_CORNERS: u32 = 10_000;

/// Shapes whose centres are anywhere in a rectangle, with equal probability.
#[derive(Debug)]
pub(crate) struct Shapes {
    x: Span,
    y: Span,
    polygon: Option<Polygon>,
}

/// From `low` to `low + width`.
#[derive(Clone, Copy, Debug)]
struct Span {
    low: f64,
    width: f64,
}

/// A polygon around a centre: its corners are in even directions, at distances from half of `radius` to all of it.
/// So it never crosses itself.
#[derive(Debug)]
struct Polygon {
    radius: f64,
    /// The directions of the corners, as the cosine and sine of their angles.
    directions: Vec<(f64, f64)>,
}

impl Shapes {
    /// Reads `point = { x = [LOW, HIGH], y = [LOW, HIGH] }`, or `polygon` with `radius` and `corners`.
    pub(crate) fn read(name: &str, node: SpecNode<'_>, kind: &LogicalType) -> Result<Self> {
        if !matches!(kind, LogicalType::Geometry { .. }) {
            let what = format!("{name} draws shapes, not {}", kind.name());
            return Err(
                node.error(what, "change the type of the field to geometry, or use another distribution")
            );
        }
        let is_polygon = name == "polygon";
        let keys: &[&str] = if is_polygon { &["x", "y", "radius", "corners"] } else { &["x", "y"] };
        let table = node.table(name, keys)?;
        let (x, y) = (span(table, "x", name)?, span(table, "y", name)?);
        let polygon = is_polygon.then(|| polygon(table)).transpose()?;
        Ok(Shapes { x, y, polygon })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.polygon.as_ref().map_or(21, |polygon| 13 + 16 * (polygon.directions.len() as u64 + 1))
    }

    /// Its name in a spec.
    pub(crate) fn name(&self) -> &'static str {
        if self.polygon.is_some() { "polygon" } else { "point" }
    }

    /// Appends the shape of a random `draw`.
    pub(crate) fn write(&self, draw: u64, out: &mut Vec<u8>) {
        let mut random = Sequence::new(draw);
        let mut within = |span: Span| span.low + span.width * unit_interval(random.next());
        let (x, y) = (within(self.x), within(self.y));
        out.push(LITTLE_ENDIAN);
        let corner = |(x, y): (f64, f64), out: &mut Vec<u8>| {
            out.extend_from_slice(&x.to_le_bytes());
            out.extend_from_slice(&y.to_le_bytes());
        };
        let Some(polygon) = &self.polygon else {
            out.extend_from_slice(&POINT.to_le_bytes());
            return corner((x, y), out);
        };
        out.extend_from_slice(&POLYGON.to_le_bytes());
        // One ring, which ends where it begins.
        out.extend_from_slice(&1u32.to_le_bytes());
        out.extend_from_slice(&(polygon.directions.len() as u32 + 1).to_le_bytes());
        let first = out.len();
        for (cosine, sine) in &polygon.directions {
            let distance = polygon.radius * (0.5 + 0.5 * unit_interval(random.next()));
            corner((x + distance * cosine, y + distance * sine), out);
        }
        out.extend_from_within(first..first + 16);
    }
}

fn span(table: SpecTable<'_>, key: &str, name: &str) -> Result<Span> {
    let node = table.need(key, name)?;
    match node.list(SpecNode::number).as_deref() {
        Some([low, high]) if low <= high && (high - low).is_finite() => {
            Ok(Span { low: *low, width: high - low })
        }
        _ => {
            let what = format!("`{key}` of {name} is not a list of two numbers in their order");
            Err(node
                .error(what, format!("write the least and the greatest coordinate: {key} = [16.2, 16.6]")))
        }
    }
}

fn polygon(table: SpecTable<'_>) -> Result<Polygon> {
    let advice = "use a number above 0, in the unit of x and y";
    let radius = table.read_needed(("radius", "polygon"), advice, |node| {
        node.number().filter(|radius| radius.is_finite() && *radius > 0.0)
    })?;
    let advice = format!("use 3 to {MAX_CORNERS} corners");
    let corners = table.read("corners", advice, |node| node.integer_in(3..=MAX_CORNERS))?.unwrap_or(4);
    let angle = |i: u32| std::f64::consts::TAU * f64::from(i) / f64::from(corners);
    let directions = (0..corners).map(angle).map(|angle| (libm::cos(angle), libm::sin(angle))).collect();
    Ok(Polygon { radius, directions })
}

/// Whether `bytes` begin like well-known binary: a byte order, then a kind of shape, with or without z and m.
pub(crate) fn is_wkb(bytes: &[u8]) -> bool {
    let Some((order, rest)) = bytes.split_first() else { return false };
    let Some(kind) = rest.first_chunk() else { return false };
    let kind = match order {
        0 => u32::from_be_bytes(*kind),
        1 => u32::from_le_bytes(*kind),
        _ => return false,
    };
    (1..=7).contains(&(kind % 1000)) && kind < 4000 && rest.len() > 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polygons_are_closed_and_stay_within_their_radius() {
        let directions =
            (0..5).map(|i| std::f64::consts::TAU * f64::from(i) / 5.0).map(|a| (libm::cos(a), libm::sin(a)));
        let span = Span { low: 10.0, width: 0.0 };
        let polygon = Some(Polygon { radius: 2.0, directions: directions.collect() });
        let shapes = Shapes { x: span, y: span, polygon };
        let mut out = Vec::new();
        shapes.write(7, &mut out);
        assert_eq!(out.len() as u64, shapes.bytes());
        assert!(is_wkb(&out));
        let numbers = out[13..].chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap()));
        let numbers: Vec<f64> = numbers.collect();
        assert_eq!(numbers[..2], numbers[10..]);
        for corner in numbers.chunks_exact(2) {
            let distance = libm::hypot(corner[0] - 10.0, corner[1] - 10.0);
            assert!((0.99..=2.01).contains(&distance), "{distance}");
        }
    }
}
