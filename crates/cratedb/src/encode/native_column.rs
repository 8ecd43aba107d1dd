//! Values of CrateDB's own types, written in the form in which the server returns them.
//!
//! The server would change some values silently: a point with a coordinate that is NULL is NULL. They are refused
//! before they are sent.

use std::io::Write as _;
use std::net::IpAddr;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use sawmill_pgcopy::{ByteStrings, Fault, Items, Lists, Offsets, shown, utf8};

use crate::encode::geometry::{Geometry, on_globe, point_from_text, write_position};
use crate::encode::json;
use crate::encode::numbers::Floats;
use crate::table::native::{Native, coordinates};

/// A column of one of these types.
pub(crate) struct NativeColumn<'a> {
    native: Native,
    /// The source has text, which may arrive as bytes.
    text: bool,
    parts: Parts<'a>,
}

enum Parts<'a> {
    List(Offsets<'a>, Numbers<'a>),
    Pair([Numbers<'a>; 2]),
    Bytes(ByteStrings<'a>),
}

/// Floats, some of which may be NULL.
struct Numbers<'a> {
    nulls: Option<&'a NullBuffer>,
    values: Floats<'a>,
}

impl<'a> Numbers<'a> {
    fn bind(array: &'a ArrayRef) -> Option<Self> {
        Some(Self { nulls: array.nulls(), values: Floats::bind(array)? })
    }

    /// `None` where it is NULL.
    fn get(&self, at: usize) -> Option<f64> {
        self.nulls.is_none_or(|nulls| nulls.is_valid(at)).then(|| self.values.get(at))
    }
}

impl<'a> NativeColumn<'a> {
    /// Binds an array; `None` if its type is unexpected.
    pub(crate) fn bind(native: Native, text: bool, array: &'a ArrayRef) -> Option<Self> {
        let parts = match array.data_type() {
            DataType::Struct(fields) => {
                let ([x, y], columns) = (coordinates(fields)?, array.as_struct_opt()?.columns());
                Parts::Pair([Numbers::bind(columns.get(x)?)?, Numbers::bind(columns.get(y)?)?])
            }
            DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
                let Lists { offsets, items: Items::Values(items), .. } = Lists::bind(array)? else {
                    return None;
                };
                Parts::List(offsets, Numbers::bind(items)?)
            }
            _ => Parts::Bytes(ByteStrings::bind(array)?),
        };
        Some(Self { native, text, parts })
    }

    /// Appends a value as JSON. The value must not be NULL.
    pub(crate) fn write_json(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
        match self.native {
            Native::GeoPoint | Native::GeoShape | Native::FloatVector(_) => self.write_plain(row, out),
            Native::Ip | Native::Bit(_) | Native::Char(_) => {
                let mut text = Vec::new();
                self.write_plain(row, &mut text)?;
                json::write_text(&text, out);
                Ok(())
            }
        }
    }

    /// Appends a value as text, and one with parts as JSON. The value must not be NULL.
    pub(crate) fn write_plain(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
        match self.native {
            Native::GeoPoint => write_position(self.point(row)?, out),
            Native::GeoShape => self.shape(row)?.write(out),
            Native::FloatVector(length) => self.write_vector(row, length, out)?,
            Native::Ip => {
                let text = utf8(self.bytes(row), 0)?;
                let address: IpAddr = text
                    .parse()
                    .map_err(|_| Fault::new(0, format!("{} is not an IPv4 or IPv6 address", shown(text))))?;
                // The server has 192.0.2.1 for ::ffff:192.0.2.1 too.
                // Writing to a Vec cannot fail.
                let _ = write!(out, "{}", address.to_canonical());
            }
            Native::Bit(length) => self.write_bits(row, length, out)?,
            Native::Char(length) => {
                let text = utf8(self.bytes(row), 0)?;
                let (units, length) = (text.encode_utf16().count(), length as usize);
                let Some(missing) = length.checked_sub(units) else {
                    let what =
                        format!("the text {} has {units} characters; CHARACTER({length})", shown(text));
                    return Err(Fault::new(0, what));
                };
                out.extend_from_slice(text.as_bytes());
                out.resize(out.len() + missing, b' ');
            }
        }
        Ok(())
    }

    fn bytes(&self, row: usize) -> &'a [u8] {
        match &self.parts {
            Parts::Bytes(bytes) => bytes.value(row),
            Parts::List(..) | Parts::Pair(_) => &[],
        }
    }

    /// Longitude and latitude.
    fn point(&self, row: usize) -> Result<[f64; 2], Fault> {
        let number = |floats: &Numbers<'_>, at: usize| {
            floats.get(at).ok_or_else(|| Fault::new(0, "a coordinate of the point is NULL"))
        };
        let position = match &self.parts {
            Parts::List(offsets, items) => {
                let range = offsets.range(row);
                if range.len() != 2 {
                    return Err(Fault::new(
                        0,
                        format!("the list has {} items; GEO_POINT takes 2", range.len()),
                    ));
                }
                [number(items, range.start)?, number(items, range.start + 1)?]
            }
            Parts::Pair([x, y]) => [number(x, row)?, number(y, row)?],
            Parts::Bytes(bytes) if self.text => {
                let text = utf8(bytes.value(row), 0)?;
                point_from_text(text).ok_or_else(|| {
                    Fault::new(0, format!("{} is not a point such as POINT (7.1 50.7)", shown(text)))
                })?
            }
            Parts::Bytes(bytes) => {
                Geometry::from_wkb(bytes.value(row)).and_then(Geometry::into_point).ok_or_else(|| {
                    Fault::new(0, "the bytes are not a point of two coordinates in WKB (WGS 84)")
                })?
            }
        };
        on_globe(position).map_err(|what| Fault::new(0, what))?;
        Ok(position)
    }

    fn shape(&self, row: usize) -> Result<Geometry, Fault> {
        let bytes = self.bytes(row);
        let shape = match self.text {
            true => {
                let text = utf8(bytes, 0)?;
                Geometry::from_text(text).ok_or_else(|| {
                    let what = "is not a shape of two coordinates in WKT or GeoJSON (WGS 84)";
                    Fault::new(0, format!("{} {what}", shown(text)))
                })?
            }
            false => Geometry::from_wkb(bytes).ok_or_else(|| {
                Fault::new(0, "the bytes are not a shape of two coordinates in WKB (WGS 84)")
            })?,
        };
        shape.check().map_err(|what| Fault::new(0, what))?;
        Ok(shape)
    }

    fn write_vector(&self, row: usize, length: u32, out: &mut Vec<u8>) -> Result<(), Fault> {
        let Parts::List(offsets, items) = &self.parts else {
            return Err(Fault::new(0, "a column of vectors has another form"));
        };
        let range = offsets.range(row);
        if range.len() != length as usize {
            let what = format!("the list has {} items; FLOAT_VECTOR({length}) takes {length}", range.len());
            return Err(Fault::new(0, what));
        }
        for (i, item) in range.enumerate() {
            let refused = |what: &str| Fault::new(0, what).below(&format!("[{i}]"));
            let number = items.get(item).ok_or_else(|| refused("a number of the vector is NULL"))? as f32;
            if !number.is_finite() {
                return Err(refused("a number of the vector is not finite as REAL"));
            }
            out.push(if i == 0 { b'[' } else { b',' });
            json::write_float(number, out);
        }
        out.push(b']');
        Ok(())
    }

    fn write_bits(&self, row: usize, length: u32, out: &mut Vec<u8>) -> Result<(), Fault> {
        let (bytes, start) = (self.bytes(row), out.len());
        match self.text {
            true if bytes.iter().all(|byte| matches!(byte, b'0' | b'1')) => out.extend_from_slice(bytes),
            true => {
                let text = shown(&String::from_utf8_lossy(bytes));
                return Err(Fault::new(0, format!("the text {text} has other characters than 0 and 1")));
            }
            false => {
                for byte in bytes {
                    // Writing to a Vec cannot fail.
                    let _ = write!(out, "{byte:08b}");
                }
            }
        }
        match out.len() - start {
            bits if bits == length as usize => Ok(()),
            bits => Err(Fault::new(0, format!("the value has {bits} bits; BIT({length}) takes {length}"))),
        }
    }
}
