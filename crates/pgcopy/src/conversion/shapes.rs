//! Shapes in well-known binary as the extension PostGIS sends them (`lwgeom_to_wkb` in liblwgeom/lwout_wkb.c): numbers in
//! little-endian order, flags for the third and fourth ordinate, and the reference system once, before the first shape.
//!
//! Only plain shapes are written here. Others, such as empty ones, curves and rings that are open, are left to the server.

use arrow_schema::Field;

use crate::arrays::marks::SRID_MARK;
use crate::types::server_type::ServerType;

const Z: u32 = 0x8000_0000;
const M: u32 = 0x4000_0000;
const HAS_SYSTEM: u32 = 0x2000_0000;
/// The system of `geography`.
const WGS_84: u32 = 4326;
/// Collections within collections, so that no input exhausts the stack.
const MAX_DEPTH: usize = 32;

/// The kinds of shapes, by their numbers from 1 on.
const KINDS: [&str; 7] =
    ["point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection"];
const COLLECTION: u32 = 7;

/// How a column gets shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shapes {
    /// The system that the source names, as text.
    pub system: Option<String>,
    is_geography: bool,
    /// The kind and flags that the column asks for, if any; no kind is any kind.
    wanted: Option<(Option<u32>, u32)>,
    /// The column's system; 0 if it has any.
    wanted_system: u32,
    /// Values of the type may have conditions that only the server knows.
    is_domain: bool,
}

impl Shapes {
    pub(super) fn new(field: &Field, of: &ServerType) -> Self {
        let name = of.0.name().to_ascii_lowercase();
        let (base, modifier) = name.split_once('(').unwrap_or((&name, ""));
        let base = base.rsplit('.').next().unwrap_or(base);
        let (kind, system) =
            modifier.trim_end_matches(')').split_once(',').unwrap_or((modifier.trim_end_matches(')'), ""));
        let plain = kind.trim_end_matches(['z', 'm']);
        let flags = if kind[plain.len()..].contains('z') { Z } else { 0 }
            | if kind[plain.len()..].contains('m') { M } else { 0 };
        let number = KINDS.iter().position(|known| *known == plain).map(|at| at as u32 + 1);
        Self {
            system: field.metadata().get(SRID_MARK).cloned(),
            is_geography: base == "geography",
            wanted: (!kind.is_empty()).then_some((number, flags)),
            wanted_system: system.parse().unwrap_or(0),
            is_domain: !matches!(base, "geometry" | "geography")
                || !kind.is_empty() && number.is_none() && plain != "geometry",
        }
    }

    /// Returns the wire format of a shape; `None` if only the server can tell.
    pub(super) fn wire(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.is_domain {
            return None;
        }
        let mut reader = Reader { rest: bytes, is_big: false, is_geography: self.is_geography };
        let (kind, flags, own) = reader.head()?;
        let marked = self.system.as_ref().map_or(Some(0), |system| system.parse().ok())?;
        let default = if self.is_geography { WGS_84 } else { self.wanted_system };
        let mut known = [own, marked, default].into_iter().filter(|system| *system != 0);
        let system = known.next().unwrap_or(0);
        let fits = self.wanted.is_none_or(|(wanted, of)| of == flags && wanted.is_none_or(|of| of == kind));
        if !fits || !known.all(|other| other == system) {
            return None;
        }
        let mut out = Vec::with_capacity(bytes.len() + 4);
        write_head(kind | flags | if system == 0 { 0 } else { HAS_SYSTEM }, &mut out);
        if system != 0 {
            out.extend(system.to_le_bytes());
        }
        reader.shape(kind, flags, MAX_DEPTH, &mut out)?;
        reader.rest.is_empty().then_some(out)
    }
}

fn write_head(word: u32, out: &mut Vec<u8>) {
    out.push(1);
    out.extend(word.to_le_bytes());
}

struct Reader<'a> {
    rest: &'a [u8],
    is_big: bool,
    is_geography: bool,
}

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        let mut bytes = *bytes;
        if self.is_big {
            bytes.reverse();
        }
        Some(bytes)
    }

    fn word(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    /// A kind, its flags and its system, which is 0 if it has none.
    fn head(&mut self) -> Option<(u32, u32, u32)> {
        let [order] = self.bytes()?;
        self.is_big = order == 0;
        let word = self.word().filter(|_| order <= 1)?;
        let number = word & !(Z | M | HAS_SYSTEM);
        // The standard adds thousands where PostGIS has flags.
        let of_thousands = *[0, Z, M, Z | M].get(number as usize / 1000)?;
        let system = if word & HAS_SYSTEM == 0 { 0 } else { self.word()? };
        let kind = (1..=COLLECTION).contains(&(number % 1000)).then_some(number % 1000)?;
        Some((kind, word & (Z | M) | of_thousands, system))
    }

    /// Appends what follows a head.
    fn shape(&mut self, kind: u32, flags: u32, depth: usize, out: &mut Vec<u8>) -> Option<()> {
        match kind {
            1 => self.points(1, flags, out),
            2 => self.counted(2, out).and_then(|count| self.points(count, flags, out)),
            3 => {
                for _ in 0..self.counted(1, out)? {
                    let count = self.counted(4, out)?;
                    let start = out.len();
                    self.points(count, flags, out)?;
                    let length = (out.len() - start) / count;
                    if out[start..start + length] != out[out.len() - length..] {
                        return None;
                    }
                }
                Some(())
            }
            _ => {
                for _ in 0..self.counted(1, out)? {
                    let (part, of_part, system) = self.head()?;
                    let fits = kind == COLLECTION || part + 3 == kind;
                    if !fits || of_part != flags || system != 0 || depth == 0 {
                        return None;
                    }
                    write_head(part | flags, out);
                    self.shape(part, flags, depth - 1, out)?;
                }
                Some(())
            }
        }
    }

    /// Appends a number of parts, at least `least`.
    fn counted(&mut self, least: usize, out: &mut Vec<u8>) -> Option<usize> {
        let count = self.word()?;
        out.extend(count.to_le_bytes());
        Some(count as usize).filter(|count| *count >= least)
    }

    /// Appends points; none for an empty one, and for one that `geography` would move.
    fn points(&mut self, count: usize, flags: u32, out: &mut Vec<u8>) -> Option<()> {
        let ordinates = 2 + (flags & (Z | M)).count_ones();
        for _ in 0..count {
            for place in 0..ordinates {
                let value = f64::from_le_bytes(self.bytes()?);
                let most = if place == 0 { 180.0 } else { 90.0 };
                let is_outside = self.is_geography && place < 2 && value.abs() > most;
                if value.is_nan() || is_outside {
                    return None;
                }
                out.extend(value.to_le_bytes());
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(modifier: Option<(Option<u32>, u32)>, wanted_system: u32) -> Shapes {
        Shapes { system: None, is_geography: false, wanted: modifier, wanted_system, is_domain: false }
    }

    #[test]
    fn shapes_are_little_endian_with_flags_and_one_system() {
        let big = [&[0, 0, 0, 0x03, 0xe9][..], &1f64.to_be_bytes(), &2f64.to_be_bytes(), &3f64.to_be_bytes()]
            .concat();
        let ordinates = [1f64, 2.0, 3.0].map(f64::to_le_bytes).concat();
        let little = [&[1, 1, 0, 0, 0xa0, 0xe6, 0x10, 0, 0][..], &ordinates].concat();
        assert_eq!(shapes(None, 4326).wire(&big).unwrap(), little);
        assert_eq!(shapes(Some((Some(1), Z)), 4326).wire(&little).unwrap(), little);
        assert_eq!(shapes(Some((Some(1), 0)), 4326).wire(&little), None);
        assert_eq!(shapes(Some((None, Z)), 3857).wire(&little), None);
        assert_eq!(shapes(None, 0).wire(&little[..20]), None);
        let list = [&[1, 2, 0, 0, 0, 1, 0, 0, 0][..], &ordinates[..16]].concat();
        assert_eq!(shapes(None, 0).wire(&list), None, "a line of one point is the server's to judge");
    }
}
