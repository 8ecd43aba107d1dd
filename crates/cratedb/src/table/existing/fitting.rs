//! The form of values for an existing column whose type holds each of them unchanged.
//!
//! CrateDB silently changes values that do not fit a type: 1.5 becomes 1 in a BIGINT, the text '7' becomes 7. It
//! does the same inside objects of any policy and in the items of arrays. So types are compared down to the last
//! field before the first row is sent.

use arrow_schema::{DataType, Field};

use super::{Policy, StoredType};
use crate::encode::form::{Form, MAX_DIGITS, Member};
use crate::table::crate_type::CrateType;
use crate::table::native::is_text;

/// Why values do not fit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// The place inside the column, such as `['a']['b']`.
    pub path: String,
    /// The table's type or property at this path.
    pub what: String,
}

impl Misfit {
    fn new(what: impl Into<String>) -> Self {
        Self { path: String::new(), what: what.into() }
    }

    fn of_type(stored: &StoredType, arrow: &DataType) -> Self {
        Self::new(format!("is {stored} in the table, which cannot take every {arrow} exactly"))
    }

    fn inside(mut self, field: &str) -> Self {
        self.path = format!("['{field}']{}", self.path);
        self
    }
}

impl Form {
    /// The form for a column of this type, and the type in which its values are sent by column. `wanted` is
    /// the type that a new column would get.
    pub(crate) fn into_stored(
        self,
        wanted: &CrateType,
        arrow: &DataType,
        stored: &StoredType,
    ) -> Result<(CrateType, Form), Misfit> {
        let misfit = || Misfit::of_type(stored, arrow);
        if stored.is_undefined() {
            return match guessed_exactly(&self) {
                true => Ok((wanted.clone(), self)),
                false => Err(Misfit::new(guess_of(arrow))),
            };
        }
        match (self, wanted, stored, arrow) {
            (Form::Null, _, _, _) => Ok((sent_as_null(wanted, stored), Form::Null)),
            (Form::Dictionary(inner), _, _, DataType::Dictionary(_, value)) => {
                let (sent, inner) = inner.into_stored(wanted, value, stored)?;
                Ok((sent, Form::Dictionary(Box::new(inner))))
            }
            (
                Form::List(form),
                CrateType::Array(wanted),
                StoredType::Array(stored),
                DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _),
            ) => {
                let (sent, form) = form.into_stored(wanted, item.data_type(), stored)?;
                Ok((CrateType::Array(Box::new(sent)), Form::List(Box::new(form))))
            }
            (
                Form::Entries(members),
                CrateType::Array(wanted_entry),
                StoredType::Array(stored_entry),
                DataType::Map(entries, _),
            ) => match (wanted_entry.as_ref(), stored_entry.as_ref(), entries.data_type()) {
                (CrateType::Object(types), StoredType::Object(policy, fields), DataType::Struct(arrow)) => {
                    let [key, value] = *members;
                    let arrow: Vec<&Field> = arrow.iter().map(AsRef::as_ref).collect();
                    let fitted = members_into(vec![key, value], types, &arrow, *policy, fields)?;
                    let members = <[Member; 2]>::try_from(fitted).map_err(|_| misfit())?;
                    Ok((wanted.clone(), Form::Entries(Box::new(members))))
                }
                _ => Err(misfit()),
            },
            (
                Form::Struct(members),
                CrateType::Object(types),
                StoredType::Object(policy, fields),
                DataType::Struct(arrow),
            ) => {
                let arrow: Vec<&Field> = arrow.iter().map(AsRef::as_ref).collect();
                let members = members_into(members, types, &arrow, *policy, fields)?;
                Ok((wanted.clone(), Form::Struct(members)))
            }
            (_, _, StoredType::Native(native), _) if native.takes(arrow) => {
                let form = Form::Native { native: *native, text: is_text(arrow) };
                Ok((CrateType::Native(*native), form))
            }
            (form, _, StoredType::Numeric { precision, scale }, _) => {
                let form = form.into_numeric(wanted, arrow, *precision, *scale).ok_or_else(misfit)?;
                let sent = match &form {
                    Form::Decimal { to, .. } => CrateType::Numeric(precision.unwrap_or(MAX_DIGITS), *to),
                    _ => wanted.clone(),
                };
                Ok((sent, form))
            }
            // The server cuts blanks beyond the length silently. The text of bytes and moments ends in none.
            (form, CrateType::Text, StoredType::Varchar(most), _) => {
                let form = if matches!(form, Form::Text) { Form::Varchar(*most) } else { form };
                Ok((CrateType::Text, form))
            }
            (form, _, StoredType::Scalar(name), _) => {
                let form = form.into_scalar(wanted, name).ok_or_else(misfit)?;
                Ok((sent_as(wanted, name), form))
            }
            _ => Err(misfit()),
        }
    }

    fn into_numeric(
        self,
        wanted: &CrateType,
        arrow: &DataType,
        precision: Option<u8>,
        scale: Option<u8>,
    ) -> Option<Form> {
        use CrateType as T;
        let places = scale.unwrap_or(0);
        let whole = |digits: u8| precision.is_none_or(|p| p.saturating_sub(places) >= digits);
        match wanted {
            T::Numeric(digits, from) => {
                let fits = precision.is_none() || places >= *from && whole(digits.saturating_sub(*from));
                let to = if precision.is_none() { *from } else { places };
                fits.then_some(Form::Decimal { from: *from, to })
            }
            T::SmallInt if whole(5) => Some(Form::Decimal { from: 0, to: places }),
            T::Integer if whole(10) => Some(Form::Decimal { from: 0, to: places }),
            T::BigInt if whole(19) && matches!(arrow, DataType::Int64 | DataType::UInt32) => {
                Some(Form::Decimal { from: 0, to: places })
            }
            _ => None,
        }
    }

    fn into_scalar(self, wanted: &CrateType, name: &str) -> Option<Form> {
        use CrateType as T;
        match (wanted, name) {
            (T::SmallInt, "integer" | "bigint") | (T::Integer, "bigint") => Some(self),
            (T::Real, "double precision") => Some(Form::Double),
            (T::Text, "character varying" | "text") => Some(self),
            (T::Timestamp | T::TimestampTz, "bigint") if matches!(self, Form::Millis { .. }) => None,
            (T::Array(_) | T::Object(_) | T::Numeric(..), _) => None,
            (wanted, name) => (wanted.catalogue_name() == name).then_some(self),
        }
    }
}

/// The fields of an object, each for the field of the same name in the table.
fn members_into(
    members: Vec<Member>,
    types: &[(String, CrateType)],
    arrow: &[&Field],
    policy: Policy,
    fields: &[(String, StoredType)],
) -> Result<Vec<Member>, Misfit> {
    let places = members.into_iter().zip(types).zip(arrow);
    let fitted = places.map(|((member, (_, wanted)), arrow)| {
        let Member { name, lead, form } = member;
        let fitted = match fields.iter().find(|(field, _)| *field == name) {
            Some((_, stored)) => form.into_stored(wanted, arrow.data_type(), stored).map(|(_, form)| form),
            None => undeclared(form, arrow.data_type(), policy),
        };
        match fitted {
            Ok(form) => Ok(Member { name, lead, form }),
            Err(misfit) => Err(misfit.inside(&name)),
        }
    });
    fitted.collect()
}

/// A field that the object does not declare.
fn undeclared(form: Form, arrow: &DataType, policy: Policy) -> Result<Form, Misfit> {
    match policy {
        Policy::Ignored => Ok(form),
        // A NULL is left out.
        _ if matches!(form, Form::Null) => Ok(form),
        Policy::Strict => {
            Err(Misfit::new("is not in the table, where the object is STRICT and takes no other field"))
        }
        Policy::Dynamic if guessed_exactly(&form) => Ok(form),
        Policy::Dynamic => Err(Misfit::new(guess_of(arrow))),
    }
}

fn guess_of(arrow: &DataType) -> String {
    format!(
        "has no type in the table, and CrateDB would guess it from the first value, which is not right for every \
         {arrow}: add it with its type before the load (ALTER TABLE ... ADD COLUMN)"
    )
}

/// Whether the type that CrateDB guesses from any first value holds all others: BIGINT from integers, BOOLEAN, TEXT
/// from strings. Among floats, it may see `"NaN"` first, and then make all of them TEXT.
fn guessed_exactly(form: &Form) -> bool {
    match form {
        Form::Real | Form::Double | Form::Native { .. } => false,
        Form::Dictionary(inner) | Form::List(inner) => guessed_exactly(inner),
        Form::Struct(members) => members.iter().all(|member| guessed_exactly(&member.form)),
        Form::Entries(members) => members.iter().all(|member| guessed_exactly(&member.form)),
        Form::Null
        | Form::Bool
        | Form::Int
        | Form::Decimal { .. }
        | Form::Text
        | Form::Varchar(_)
        | Form::Base64
        | Form::Hex
        | Form::Uuid
        | Form::Millis { .. }
        | Form::Stamp
        | Form::Day
        | Form::Clock
        | Form::Interval => true,
    }
}

/// The type in which values are sent by column to a scalar one.
fn sent_as(natural: &CrateType, name: &str) -> CrateType {
    match name {
        "integer" => CrateType::Integer,
        "bigint" => CrateType::BigInt,
        "double precision" => CrateType::Double,
        _ => natural.clone(),
    }
}

/// The same of a column that holds nothing but NULL.
fn sent_as_null(natural: &CrateType, stored: &StoredType) -> CrateType {
    match stored {
        StoredType::Scalar(name) => sent_as(natural, name),
        StoredType::Array(item) => CrateType::Array(Box::new(sent_as_null(natural, item))),
        StoredType::Native(native) => CrateType::Native(*native),
        StoredType::Object(..) => CrateType::Object(Vec::new()),
        StoredType::Numeric { .. } | StoredType::Varchar(_) => natural.clone(),
    }
}
