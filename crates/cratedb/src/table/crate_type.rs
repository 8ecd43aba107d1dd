//! Column types of CrateDB, and how they are written in DDL.
//!
//! <https://cratedb.com/docs/crate/reference/en/latest/general/ddl/data-types.html>

use std::fmt::Write as _;

use crate::options::Objects;
use crate::table::names::quote;
use crate::table::native::Native;

/// A column type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CrateType {
    Boolean,
    SmallInt,
    Integer,
    BigInt,
    Real,
    Double,
    /// Precision and scale.
    Numeric(u8, u8),
    Text,
    Timestamp,
    TimestampTz,
    Native(Native),
    Object(Vec<(String, CrateType)>),
    Array(Box<CrateType>),
}

/// How columns are laid down in DDL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub objects: Objects,
    /// Text gets neither index nor column store.
    pub plain_text: bool,
}

impl CrateType {
    /// The type as `CREATE TABLE` takes it, without storage options.
    pub(crate) fn ddl(&self, layout: Layout) -> String {
        match self {
            Self::Object(fields) => {
                let policy = match layout.objects {
                    Objects::Strict => "STRICT",
                    Objects::Dynamic => "DYNAMIC",
                    // Declared fields would be typed and indexed after all.
                    Objects::Ignored => return "OBJECT(IGNORED)".to_owned(),
                };
                let mut ddl = format!("OBJECT({policy})");
                if !fields.is_empty() {
                    let fields = fields.iter().map(|(name, field)| {
                        format!("{} {}{}", quote(name), field.ddl(layout), field.text_storage(layout))
                    });
                    // Writing to a String cannot fail.
                    let _ = write!(ddl, " AS ({})", fields.collect::<Vec<_>>().join(", "));
                }
                ddl
            }
            Self::Array(item) => format!("ARRAY({})", item.ddl(layout)),
            Self::Native(native) => native.to_string(),
            Self::Numeric(precision, scale) => format!("NUMERIC({precision},{scale})"),
            scalar => scalar.scalar_name().to_uppercase(),
        }
    }

    /// The clause that lets a text column take values of any length.
    pub(crate) fn text_storage(&self, layout: Layout) -> &'static str {
        match layout.plain_text && *self.innermost() == Self::Text {
            true => " INDEX OFF STORAGE WITH (columnstore = false)",
            false => "",
        }
    }

    /// The type without the arrays around it.
    pub(crate) fn innermost(&self) -> &CrateType {
        match self {
            Self::Array(item) => item.innermost(),
            other => other,
        }
    }

    fn scalar_name(&self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::SmallInt => "smallint",
            Self::Integer => "integer",
            Self::BigInt => "bigint",
            Self::Real => "real",
            Self::Double => "double precision",
            Self::Numeric(..) => "numeric",
            Self::Text => "text",
            Self::Timestamp => "timestamp without time zone",
            Self::TimestampTz => "timestamp with time zone",
            Self::Native(native) => native.name(),
            Self::Object(_) => "object",
            Self::Array(_) => "array",
        }
    }

    /// The name in `information_schema.columns.data_type`.
    pub(crate) fn catalogue_name(&self) -> String {
        match self {
            Self::Array(item) => format!("{}_array", item.catalogue_name()),
            other => other.scalar_name().to_owned(),
        }
    }

    /// The type that JSON text of a value is cast to.
    pub(crate) fn cast(&self) -> String {
        match self {
            Self::Array(item) => format!("array({})", item.cast()),
            Self::Native(native) => native.to_string().to_lowercase(),
            other => other.scalar_name().to_owned(),
        }
    }

    /// Whether the type has parts.
    pub(crate) fn is_nested(&self) -> bool {
        matches!(self, Self::Object(_) | Self::Array(_))
    }

    /// Whether `STORAGE WITH (columnstore = false)` is allowed (`StorageSupport.supportsDocValuesOff`).
    pub(crate) fn may_leave_columnstore(&self) -> bool {
        !matches!(self.innermost(), Self::Boolean | Self::Native(_) | Self::Object(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_types_are_declared_to_any_depth() {
        let point = CrateType::Array(Box::new(CrateType::Array(Box::new(CrateType::Double))));
        let phone = CrateType::Object(vec![("no.".into(), CrateType::Text), ("at".into(), point)]);
        let phones = CrateType::Array(Box::new(phone));
        let layout = Layout { objects: Objects::Strict, plain_text: false };
        assert_eq!(
            phones.ddl(layout),
            "ARRAY(OBJECT(STRICT) AS (\"no.\" TEXT, \"at\" ARRAY(ARRAY(DOUBLE PRECISION))))"
        );
        assert_eq!(phones.catalogue_name(), "object_array");
        assert_eq!(phones.cast(), "array(object)");
        let ignored = Layout { objects: Objects::Ignored, plain_text: false };
        assert_eq!(phones.ddl(ignored), "ARRAY(OBJECT(IGNORED))");
        let plain = Layout { objects: Objects::Dynamic, plain_text: true };
        assert!(phones.ddl(plain).starts_with("ARRAY(OBJECT(DYNAMIC) AS (\"no.\" TEXT INDEX OFF STORAGE"));
    }
}
