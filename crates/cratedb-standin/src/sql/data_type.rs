//! Types of columns.

use super::cursor::Cursor;
use crate::types::{Policy, Type};

impl Cursor {
    pub(super) fn data_type(&mut self) -> Result<Type, String> {
        let word = self.ident()?;
        Ok(match word.as_str() {
            "boolean" => Type::Boolean,
            "smallint" => Type::Integer(16),
            "integer" | "int" => Type::Integer(32),
            "bigint" | "long" => Type::Integer(64),
            "real" => Type::Real,
            "double" => {
                self.expect("precision")?;
                Type::Double
            }
            "numeric" => self.numeric()?,
            "text" | "string" => Type::Text(None),
            "varchar" => Type::Text(self.list(Self::number)?.first().copied()),
            "timestamp" => {
                let zone = self.words("with time zone");
                if !zone {
                    self.expect("without time zone")?;
                }
                Type::Timestamp(zone)
            }
            "geo_point" => Type::GeoPoint,
            "geo_shape" => Type::GeoShape,
            "float_vector" => Type::FloatVector(self.length()?),
            "ip" => Type::Ip,
            "bit" => Type::Bit(self.length()?),
            "character" | "char" => Type::Character(self.length()?),
            "object" => self.object()?,
            "array" => {
                self.expect("(")?;
                let item = self.data_type()?;
                self.expect(")")?;
                Type::Array(Box::new(item))
            }
            other => return Err(format!("Cannot find data type: {other}")),
        })
    }

    /// A length in parentheses; without one it is 1.
    fn length(&mut self) -> Result<usize, String> {
        match self.is_sign("(") {
            true => self.list(Self::number)?.first().copied().ok_or_else(|| "line 1: no length".into()),
            false => Ok(1),
        }
    }

    /// The rest of `NUMERIC` or `NUMERIC(precision, scale)`.
    fn numeric(&mut self) -> Result<Type, String> {
        if !self.is_sign("(") {
            return Ok(Type::Numeric(None));
        }
        match self.list(Self::number)?.as_slice() {
            [precision, scale] if *precision <= 38 => {
                Ok(Type::Numeric(Some((*precision as u32, *scale as u32))))
            }
            _ => Err("Precision and scale of NUMERIC are out of range".into()),
        }
    }

    /// The rest of `OBJECT(policy) AS (fields)`; policy and fields may be missing.
    fn object(&mut self) -> Result<Type, String> {
        let mut policy = Policy::Dynamic;
        if self.is_sign("(") {
            policy = match self.list(Self::ident)?.first().map(String::as_str) {
                Some("strict") => Policy::Strict,
                Some("ignored") => Policy::Ignored,
                Some("dynamic") => Policy::Dynamic,
                _ => return Err("line 1: unknown column policy".into()),
            };
        }
        let fields = match self.words("as") {
            true => self.list(|cursor| cursor.column().map(|(column, _)| (column.name, column.data_type)))?,
            false => Vec::new(),
        };
        Ok(Type::Object(policy, fields))
    }
}
