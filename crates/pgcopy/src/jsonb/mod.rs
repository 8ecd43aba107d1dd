//! Writes nested values as jsonb, byte for byte as PostgreSQL prints it.
//!
//! In binary COPY a jsonb value is a version byte and its text (`jsonb_recv`, `jsonb_send` in
//! src/backend/utils/adt/jsonb.c). The server sends its own text of the stored value (`JsonbToCString`).
//! Text in exactly that form makes content sums comparable without a parser:
//!
//! - members of an object ordered by the length of their key, then by its bytes
//!   (`lengthCompareJsonbString` in jsonb_util.c), each key once;
//! - `", "` between members and elements, `": "` after a key;
//! - strings escaped as by `escape_json` ([`text`]);
//! - numbers as `numeric_out` prints them: no exponent, zero without a sign.
//!
//! | Arrow | jsonb |
//! |---|---|
//! | struct | object with every field, `null` where it is NULL |
//! | list | array |
//! | map with text keys | object; a repeated key is rejected |
//! | other map | array of `{"key": k, "value": v}` |
//! | integers, decimals | number, a decimal with its full scale |
//! | floats | number with the shortest digits that parse to the same value; `"NaN"`, `"Infinity"` and `"-Infinity"` as strings, as in `to_jsonb`; -0 becomes 0 |
//! | bool | `true`, `false` |
//! | text, dictionary | string |
//! | text marked as JSON | its value |
//! | bytes | string `\x` and hexadecimal digits, as `to_jsonb(bytea)` |
//! | UUID, date, time, timestamp | string in ISO 8601 as in `to_jsonb`; with time zone in UTC, ending in `+00:00` |
//! | interval, duration | string in ISO 8601 (`P1Y2M3DT4H5M6.7S`) |

pub(crate) mod json_column;
pub(crate) mod moment;
mod number;
pub(crate) mod text;

use arrow_schema::{DataType, Field};

pub(crate) use json_column::JsonColumn;

use crate::arrays::integers::scale;
use crate::arrays::marks::{is_interval, is_json, is_uuid};
use text::write_string;

/// How values of a type are written as jsonb, planned once per column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JsonLayout {
    /// A number, string, boolean or null; the array's type says which.
    Leaf,
    /// Text that is JSON.
    Json,
    Uuid,
    /// The bytes of Parquet's INTERVAL.
    Interval,
    Decimal(u16),
    Dictionary(Box<JsonLayout>),
    List(Box<JsonLayout>),
    Struct(Vec<ObjectMember>),
    /// Text keys.
    Object(Box<JsonLayout>),
    /// Other keys.
    Pairs(Box<JsonLayout>, Box<JsonLayout>),
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectMember {
    /// Separator, key and colon.
    lead: Vec<u8>,
    name: String,
    /// Position among the struct's fields.
    field: usize,
    layout: JsonLayout,
}

impl JsonLayout {
    /// Plans the layout of a field. The error says why it has none.
    pub(crate) fn new(field: &Field) -> Result<Self, String> {
        let named = |what: String| format!("{:?}: {what}", field.name());
        Ok(match field.data_type() {
            DataType::Struct(fields) => {
                let mut order: Vec<usize> = (0..fields.len()).collect();
                order.sort_by_key(|i| (fields[*i].name().len(), fields[*i].name().as_bytes().to_vec()));
                if let Some(pair) =
                    order.windows(2).find(|pair| fields[pair[0]].name() == fields[pair[1]].name())
                {
                    return Err(named(format!("two fields are named {:?}", fields[pair[0]].name())));
                }
                let mut members = Vec::with_capacity(order.len());
                for i in order {
                    let mut lead = if members.is_empty() { Vec::new() } else { b", ".to_vec() };
                    write_string(fields[i].name().as_bytes(), &mut lead)
                        .map_err(|_| named(format!("the field name {:?} contains 0x00", fields[i].name())))?;
                    lead.extend_from_slice(b": ");
                    let layout = JsonLayout::new(&fields[i]).map_err(named)?;
                    members.push(ObjectMember { lead, name: fields[i].name().clone(), field: i, layout });
                }
                Self::Struct(members)
            }
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                Self::List(Box::new(JsonLayout::new(item).map_err(named)?))
            }
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 => {
                    let value = Box::new(JsonLayout::new(&fields[1]).map_err(named)?);
                    match fields[0].data_type() {
                        text if text.is_string() => Self::Object(value),
                        _ => Self::Pairs(Box::new(JsonLayout::new(&fields[0]).map_err(named)?), value),
                    }
                }
                other => return Err(named(format!("a map of {other} is not supported"))),
            },
            DataType::Dictionary(_, value) => {
                let value = field.clone().with_data_type(value.as_ref().clone());
                Self::Dictionary(Box::new(JsonLayout::new(&value)?))
            }
            arrow if arrow.is_decimal() => {
                let scale = scale(arrow);
                Self::Decimal(u16::try_from(scale).map_err(|_| named(format!("negative scale {scale}")))?)
            }
            DataType::FixedSizeBinary(16) if is_uuid(field) => Self::Uuid,
            DataType::FixedSizeBinary(_) if is_interval(field) => Self::Interval,
            _ if is_json(field) => Self::Json,
            other if json_column::is_leaf(other) => Self::Leaf,
            other => return Err(named(format!("Arrow type {other} is not supported"))),
        })
    }
}
