//! The selection of a source's columns: which ones, in which order, under which names.

use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use sawmill_profile::{Error, Kind, Result, known_columns};

/// The selected columns of a schema.
pub(crate) struct ColumnChoice {
    /// Their positions in that schema, in the requested order.
    pub places: Vec<usize>,
    /// Their fields, with their new names.
    pub schema: SchemaRef,
    /// The selection as text, a part of a load's identity.
    pub mapping: String,
}

impl ColumnChoice {
    /// Selects the named columns (all if `columns` is empty) and renames some. Returns `None` if both lists
    /// are empty.
    ///
    /// # Errors
    /// A column that does not exist, that is named twice, or whose name several columns have; two columns
    /// with the same new name.
    pub(crate) fn new(
        schema: &SchemaRef,
        columns: &[String],
        renames: &[(String, String)],
    ) -> Result<Option<Self>> {
        if columns.is_empty() && renames.is_empty() {
            return Ok(None);
        }
        let refused = |what: String, name: &str| {
            let names = || schema.fields().iter().map(|field| field.name().as_str());
            let mut advice = known_columns(name, names());
            if let Some(name) = names().find(|name| name.contains(',')) {
                let quoted = name.replace('"', "\"\"");
                advice += &format!("; write a name with a comma in double quotes: --columns '\"{quoted}\"'");
            }
            Error::new(Kind::Config, what).advise(advice)
        };
        let named = columns.iter().chain(renames.iter().map(|(from, _)| from));
        for name in named {
            let bearers = schema.fields().iter().filter(|field| field.name() == name).count();
            if bearers > 1 {
                let what = format!("the name {name:?} is ambiguous: {bearers} columns have it");
                return Err(Error::new(Kind::Config, what)
                    .advise("select other columns with --columns, or write the file with distinct names"));
            }
        }
        let places: Vec<usize> = match columns {
            [] => (0..schema.fields().len()).collect(),
            names => {
                let find = |name: &String| {
                    schema.index_of(name).map_err(|_| refused(format!("there is no column {name:?}"), name))
                };
                names.iter().map(find).collect::<Result<_>>()?
            }
        };
        let mut fields: Vec<Field> = places.iter().map(|i| schema.field(*i).clone()).collect();
        for (from, to) in renames {
            let Some(at) = places.iter().position(|i| schema.field(*i).name() == from) else {
                return Err(refused(format!("there is no column {from:?} to rename"), from));
            };
            fields[at].set_name(to.clone());
        }
        let mut names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(refused(format!("two columns would have the name {:?}", pair[0]), pair[0]));
        }
        let mapping = format!("columns {columns:?} renames {renames:?}");
        Ok(Some(Self { places, schema: Arc::new(Schema::new(fields)), mapping }))
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::DataType;

    use super::*;

    #[test]
    fn a_name_that_two_columns_have_selects_neither() {
        let field = |name| Field::new(name, DataType::Int32, true);
        let schema = Arc::new(Schema::new(vec![field("a"), field("a"), field("b")]));
        let chosen = ColumnChoice::new(&schema, &["b".to_owned()], &[]).unwrap().unwrap();
        assert_eq!(chosen.places, [2]);
        let renames = [("a".to_owned(), "c".to_owned())];
        for (columns, renames) in [(&["a".to_owned()][..], &[][..]), (&[], &renames)] {
            let error = ColumnChoice::new(&schema, columns, renames).err().unwrap();
            assert!(error.to_string().contains("the name \"a\" is ambiguous: 2 columns"), "{error}");
        }
    }
}
