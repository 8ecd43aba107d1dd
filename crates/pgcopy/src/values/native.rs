//! Encodes lists, structs and maps as PostgreSQL arrays and composite values.
//!
//! The formats follow `array_send` and `record_send` (src/backend/utils/adt/arrayfuncs.c, rowtypes.c):
//!
//! - array: number of dimensions, 1 if an element is NULL or else 0, the elements' type, for each dimension
//!   its length and its lower bound (always 1), then each element as a length (-1 for NULL) and its bytes. An
//!   array without elements has no dimensions;
//! - composite: number of attributes, then the type, length and bytes of each.
//!
//! All numbers have 32 bits. The server rejects type OIDs other than its own, so they come from its
//! catalogue. Several levels of lists become one array of several dimensions, which is rectangular. Lists
//! within a list that are NULL or of different lengths cannot be encoded and are rejected.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field};

use super::element::{BoundElement, Element};
use crate::arrays::dictionary::Keys;
use crate::arrays::fault::Fault;
use crate::arrays::lists::{Items, Lists, Offsets};
use crate::types::column_type::{ColumnType, Composite, elements_of};
use crate::types::pg_type::PgType;

/// The advice for a list that cannot be encoded.
const ADVICE: &str = "PostgreSQL arrays are rectangular; load the column as jsonb (--nested jsonb)";
const NULL: [u8; 4] = (-1i32).to_be_bytes();

/// The encoding of a type's values, planned once per column.
#[derive(Clone, Debug)]
pub(crate) enum NativeLayout {
    Leaf(Box<Element>),
    Array { dimensions: usize, element: Box<NativeLayout>, oid: u32 },
    Composite(Vec<AttributeLayout>),
}

/// An attribute of a composite value.
#[derive(Clone, Debug)]
pub(crate) struct AttributeLayout {
    name: String,
    /// Position among the struct's fields.
    field: usize,
    oid: u32,
    layout: NativeLayout,
}

/// Whether the values may be in the wire format, which a conversion has produced: fields that need a conversion and
/// have none are refused before.
fn is_wire(field: &Field) -> bool {
    *field.data_type() == DataType::LargeBinary
}

impl NativeLayout {
    /// Plans the encoding of a field into a type that accepts it.
    pub(crate) fn choose(field: &Field, target: &ColumnType) -> Result<Self, String> {
        let refused = || format!("{} cannot be sent as {target}", field.data_type());
        match target {
            ColumnType::Plain(pg_type) => {
                Ok(Self::Leaf(Box::new(match (Element::choose(field, *pg_type)?, pg_type) {
                    (Element::Bytes, PgType::Varchar(Some(most))) => Element::Varchar(*most),
                    (element, _) => element,
                })))
            }
            _ if *field.data_type() == DataType::Null => Ok(Self::Leaf(Box::new(Element::Null))),
            _ if is_wire(field) => Ok(Self::Leaf(Box::new(Element::Bytes))),
            ColumnType::Enumeration(_) | ColumnType::OfServer(_) => Err(refused()),
            ColumnType::Array(part) => {
                let is_element = |item: &Field| is_wire(item) || part.column_type.takes(item);
                let (item, dimensions) = elements_of(field, is_element).ok_or_else(refused)?;
                let element = Box::new(Self::choose(&item, &part.column_type)?);
                Ok(Self::Array { dimensions, element, oid: part.oid })
            }
            ColumnType::Composite(composite) => match field.data_type() {
                DataType::Struct(fields) => Self::composite(fields, composite, refused),
                _ => Err(refused()),
            },
        }
    }

    fn composite(
        fields: &arrow_schema::Fields,
        composite: &Composite,
        refused: impl Fn() -> String,
    ) -> Result<Self, String> {
        let members = composite.attributes.iter().map(|attribute| {
            let (place, field) = fields.find(&attribute.name).ok_or_else(&refused)?;
            let layout = Self::choose(field, &attribute.part.column_type)?;
            Ok(AttributeLayout {
                name: attribute.name.clone(),
                field: place,
                oid: attribute.part.oid,
                layout,
            })
        });
        Ok(Self::Composite(members.collect::<Result<_, String>>()?))
    }

    /// Combines the encoding with an array of the planned type. The error names the type of an unexpected
    /// array.
    pub(crate) fn bind<'a>(&'a self, array: &'a ArrayRef) -> Result<NativeColumn<'a>, String> {
        let wrong = || format!("unexpected array of type {}", array.data_type());
        let values = match self {
            Self::Leaf(element) => match Keys::bind(array) {
                Some((keys, entries)) => NativeValues::Dictionary(keys, entries, element.bind(entries)?),
                None => NativeValues::Leaf(element.bind(array)?),
            },
            Self::Array { dimensions, element, oid } => {
                let mut lists = Lists::bind(array).ok_or_else(wrong)?;
                let mut levels = vec![Level { offsets: lists.offsets, nulls: None }];
                for _ in 1..*dimensions {
                    let Items::Values(inner) = lists.items else { return Err(wrong()) };
                    lists = Lists::bind(inner).ok_or_else(wrong)?;
                    levels.push(Level { offsets: lists.offsets, nulls: lists.nulls });
                }
                let element = match lists.items {
                    Items::Values(items) => element.bind(items)?,
                    Items::Entries(entries) => element.bind_struct(entries)?,
                };
                NativeValues::Array { levels, element: Box::new(element), oid: *oid }
            }
            Self::Composite(_) => return self.bind_struct(array.as_struct_opt().ok_or_else(wrong)?),
        };
        Ok(NativeColumn { nulls: array.nulls().filter(|nulls| nulls.null_count() > 0), values })
    }

    fn bind_struct<'a>(&'a self, array: &'a StructArray) -> Result<NativeColumn<'a>, String> {
        let wrong = || format!("unexpected array of type {}", array.data_type());
        let Self::Composite(members) = self else { return Err(wrong()) };
        let bound = members.iter().map(|member| {
            let column = array.columns().get(member.field).ok_or_else(wrong)?;
            Ok((member, member.layout.bind(column)?))
        });
        let values = NativeValues::Composite(bound.collect::<Result<_, String>>()?);
        Ok(NativeColumn { nulls: array.nulls().filter(|nulls| nulls.null_count() > 0), values })
    }
}

/// The array of one batch with the encoding of its values.
pub(crate) struct NativeColumn<'a> {
    nulls: Option<&'a NullBuffer>,
    values: NativeValues<'a>,
}

enum NativeValues<'a> {
    Leaf(BoundElement<'a>),
    Dictionary(Keys<'a>, &'a ArrayRef, BoundElement<'a>),
    Array { levels: Vec<Level<'a>>, element: Box<NativeColumn<'a>>, oid: u32 },
    Composite(Vec<(&'a AttributeLayout, NativeColumn<'a>)>),
}

/// One level of lists: a dimension of the array.
struct Level<'a> {
    offsets: Offsets<'a>,
    /// Which lists within a list are NULL. The caller has checked the outermost list.
    nulls: Option<&'a NullBuffer>,
}

impl NativeColumn<'_> {
    /// Appends one value, which must not be NULL. Returns false for the type whose values are all NULL.
    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<bool, Fault> {
        match &self.values {
            NativeValues::Leaf(element) => return element.write(row, out),
            NativeValues::Dictionary(keys, entries, element) => {
                let entry = keys.key(row);
                return Ok(entries.is_valid(entry) && element.write(entry, out)?);
            }
            NativeValues::Array { levels, element, oid } => write_array(row, levels, element, *oid, out)?,
            NativeValues::Composite(members) => {
                put(out, members.len())?;
                for (member, column) in members {
                    out.extend_from_slice(&member.oid.to_be_bytes());
                    column
                        .write_field(row, out)
                        .map_err(|fault| fault.below(&format!(".{}", member.name)))?;
                }
            }
        }
        Ok(true)
    }

    /// Appends length and bytes of a value; returns whether it is NULL.
    fn write_field(&self, row: usize, out: &mut Vec<u8>) -> Result<bool, Fault> {
        let start = out.len();
        out.extend_from_slice(&NULL);
        if self.nulls.is_some_and(|nulls| nulls.is_null(row)) || !self.write(row, out)? {
            return Ok(true);
        }
        let length = number(out.len() - start - 4)?;
        out[start..start + 4].copy_from_slice(&length);
        Ok(false)
    }
}

fn write_array(
    row: usize,
    levels: &[Level<'_>],
    element: &NativeColumn<'_>,
    oid: u32,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let start = out.len();
    let Some((outermost, inner)) = levels.split_first() else { return Ok(()) };
    let mut items = outermost.offsets.range(row);
    let dimensions = if items.is_empty() { 0 } else { levels.len() };
    put(out, dimensions)?;
    let flag = out.len() + 3;
    put(out, 0)?;
    out.extend_from_slice(&oid.to_be_bytes());
    if dimensions == 0 {
        return Ok(());
    }
    let mut put_dimension = |length: usize| {
        put(out, length)?;
        put(out, 1)
    };
    put_dimension(items.len())?;
    for level in inner {
        let (length, below) = level.rectangle(items)?;
        put_dimension(length)?;
        items = below;
    }
    debug_assert_eq!(out.len(), start + 12 + 8 * levels.len());
    let first = items.start;
    for item in items {
        let null =
            element.write_field(item, out).map_err(|fault| fault.below(&format!("[{}]", item - first)))?;
        out[flag] |= u8::from(null);
    }
    Ok(())
}

impl Level<'_> {
    /// Returns the common length of these lists, and the range of their items.
    fn rectangle(&self, lists: Range<usize>) -> Result<(usize, Range<usize>), Fault> {
        let first = self.offsets.range(lists.start);
        let mut end = first.start;
        for list in lists.clone() {
            let place = list - lists.start;
            if self.nulls.is_some_and(|nulls| nulls.is_null(list)) {
                return Err(Fault::new(0, format!("the list at [{place}] within a list is NULL: {ADVICE}")));
            }
            let range = self.offsets.range(list);
            if range.len() != first.len() {
                let what = format!(
                    "lists within a list have {} and, at [{place}], {} elements: {ADVICE}",
                    first.len(),
                    range.len()
                );
                return Err(Fault::new(0, what));
            }
            end = range.end;
        }
        match first.len() {
            0 => Err(Fault::new(
                0,
                format!(
                    "{} lists within a list are empty, which an array cannot distinguish from an empty list: {ADVICE}",
                    lists.len()
                ),
            )),
            length => Ok((length, first.start..end)),
        }
    }
}

fn number(value: usize) -> Result<[u8; 4], Fault> {
    let fits = i32::try_from(value).map(i32::to_be_bytes);
    fits.map_err(|_| Fault::new(0, format!("{value} bytes or elements are more than PostgreSQL accepts")))
}

fn put(out: &mut Vec<u8>, value: usize) -> Result<(), Fault> {
    out.extend_from_slice(&number(value)?);
    Ok(())
}
