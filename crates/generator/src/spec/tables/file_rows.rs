//! The rows of a table that a CSV or Parquet file beside the spec has.

use std::fmt;
use std::path::Path;

use crate::draw::choice::of_text;
use crate::draw::value_spec::ValueSpec;
use crate::draw::value_spec::cycle::in_order;
use crate::error::{Complaint, Result};
use crate::spec_file::folder::SpecFolder;
#[cfg(feature = "parquet")]
use crate::spec_file::folder::is_parquet;
use crate::spec_file::toml_reader::{SpecNode, SpecTable};
use crate::types::logical_type::LogicalType;

/// The names of the columns, and the rows.
#[derive(Debug)]
pub(crate) struct FileRows {
    /// The name of the file.
    file: String,
    columns: Vec<String>,
    pub rows: Vec<Record>,
}

/// The cells of a row; nulls of a Parquet file are none.
type Record = Vec<Option<String>>;

impl FileRows {
    /// The rows of the file that `table` names as `node`.
    pub(crate) fn read(table: SpecTable<'_>, node: SpecNode<'_>, folder: &SpecFolder<'_>) -> Result<Self> {
        if let Some(key) = ["rows", "per", "scale"].iter().find(|key| table.get(key).is_some()) {
            let what = format!("`{key}` of a table with `file`, which determines its rows");
            return Err(table.key_error(key, what, "remove one of them"));
        }
        let name = node.string().unwrap_or_default();
        let unreadable = |error: &dyn fmt::Display| {
            let what = format!("cannot read the rows in {}: {error}", folder.path(name).display());
            node.error(what, "put a CSV or Parquet file next to the spec")
        };
        let records = match Path::new(name) {
            #[cfg(feature = "parquet")]
            path if is_parquet(path) => {
                let (path, _) = folder.read_bytes(name).map_err(|error| unreadable(&error))?;
                let file = folder.open(&path).map_err(|error| unreadable(&error))?;
                parquet_records(file).map_err(|error| unreadable(&error))?
            }
            _ => records(&folder.read(name).map_err(|error| unreadable(&error))?).map_err(|line| {
                let what = format!("the quote in line {line} of {name} is not closed");
                node.error(what, "close it, or write the whole cell in quotes and each quote in it twice")
            })?,
        };
        let mut records = records.into_iter();
        let columns: Vec<String> = records.next().into_iter().flatten().flatten().collect();
        let rows: Vec<Record> = records.collect();
        let wrong = rows.iter().position(|row| row.len() != columns.len());
        let what = match wrong {
            Some(row) => format!("row {} of {name} has not {} cells", row + 1, columns.len()),
            None if rows.is_empty() => format!("{name} has no rows"),
            None => match twice(&columns) {
                Some(column) => format!("{name} has two columns {column:?}"),
                None => return Ok(FileRows { file: name.to_owned(), columns, rows }),
            },
        };
        Err(node.error(what, "write a header, then rows with as many cells, separated by commas"))
    }

    /// The values of the column `name`, for a field of this type.
    pub(crate) fn column(&self, name: &str, kind: &LogicalType) -> Result<ValueSpec, Complaint> {
        let Some(place) = self.columns.iter().position(|column| column == name) else {
            let what = format!("{} has no column {name:?}", self.file);
            return Err((what, format!("its columns are {}", self.columns.join(", "))));
        };
        if *kind == LogicalType::Boolean {
            return Err((
                format!("{name} of {} in a boolean", self.file),
                "use a string, and compare it in a formula".into(),
            ));
        }
        let mut values = Vec::with_capacity(self.rows.len());
        for (row, cells) in self.rows.iter().enumerate() {
            let value = cells.get(place).and_then(Option::as_ref).and_then(|cell| of_text(kind, cell));
            values.push(value.ok_or_else(|| {
                (format!("row {} of {} has no {} in {name}", row + 1, self.file, kind.name()), kind.takes())
            })?);
        }
        in_order(&values, 1)
    }
}

/// A name that two columns have.
fn twice(columns: &[String]) -> Option<&String> {
    let is_second = |(place, name): &(usize, &String)| columns[..*place].contains(name);
    columns.iter().enumerate().find(is_second).map(|(_, name)| name)
}

/// The names and the cells of the columns without parts of a Parquet file.
#[cfg(feature = "parquet")]
fn parquet_records(file: std::fs::File) -> Result<Vec<Record>, parquet::errors::ParquetError> {
    use arrow_array::Array;
    use arrow_cast::display::{ArrayFormatter, FormatOptions};
    use arrow_schema::DataType;
    use parquet::arrow::{ProjectionMask, arrow_reader::ParquetRecordBatchReaderBuilder};
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)?;
    let fields = reader.schema().fields().clone();
    let flat = || fields.iter().enumerate().filter(|(_, field)| !field.data_type().is_nested());
    let mask = ProjectionMask::roots(reader.parquet_schema(), flat().map(|(place, _)| place));
    let mut records = vec![flat().map(|(_, field)| Some(field.name().clone())).collect()];
    for batch in reader.with_projection(mask).build()? {
        let batch = batch?;
        let options = FormatOptions::new();
        let columns = batch.columns().iter().map(|array| {
            let is_binary = matches!(array.data_type(), DataType::Binary | DataType::FixedSizeBinary(_));
            let formatter = ArrayFormatter::try_new(array, &options)?;
            Ok((array, if is_binary { "0x" } else { "" }, formatter))
        });
        let columns = columns.collect::<Result<Vec<_>, parquet::errors::ParquetError>>()?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|(array, prefix, cells)| {
                let cell = array.is_valid(row).then(|| cells.value(row).try_to_string());
                Ok(cell.transpose()?.map(|cell| format!("{prefix}{cell}")))
            });
            records.push(cells.collect::<Result<_, arrow_schema::ArrowError>>()?);
        }
    }
    Ok(records)
}

/// The records of comma-separated text. A quoted cell may contain commas, line ends and doubled quotes.
///
/// # Errors
/// The line of a quote that is not closed.
fn records(text: &str) -> Result<Vec<Record>, usize> {
    let mut records = Vec::new();
    let (mut line, mut opened) = (1, 1);
    let (mut record, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut characters = text.strip_prefix('\u{feff}').unwrap_or(text).chars().peekable();
    while let Some(c) = characters.next() {
        line += usize::from(c == '\n');
        match c {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' if is_quoted || cell.is_empty() => (is_quoted, opened) = (!is_quoted, line),
            ',' if !is_quoted => record.push(Some(std::mem::take(&mut cell))),
            '\r' if !is_quoted && characters.peek() == Some(&'\n') => {}
            '\n' if !is_quoted => {
                record.push(Some(std::mem::take(&mut cell)));
                records.push(std::mem::take(&mut record));
            }
            c => cell.push(c),
        }
    }
    if is_quoted {
        return Err(opened);
    }
    if !cell.is_empty() || !record.is_empty() {
        record.push(Some(cell));
        records.push(record);
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::value_spec::ChosenBy;

    /// The values of a column with these cells, PLAIN-encoded.
    fn stored(kind: &LogicalType, cells: &[&str]) -> Vec<Vec<u8>> {
        let rows = cells.iter().map(|cell| vec![Some((*cell).to_owned())]).collect();
        let file = FileRows { file: "t.csv".to_owned(), columns: vec!["x".to_owned()], rows };
        let ValueSpec::Choice { dictionary, by: Some(by), .. } = file.column("x", kind).unwrap() else {
            panic!("a column of a file is not in its order")
        };
        let ChosenBy::Row(cycle) = &*by else { panic!("the rows do not choose") };
        (0..cells.len() as u64).map(|row| dictionary.entries[cycle.number(row) as usize].clone()).collect()
    }

    #[test]
    fn numbers_keep_the_sign_of_zero_and_are_those_that_the_type_stores() {
        let doubles = [0.0f64, -0.0, 5.0].map(|v| v.to_le_bytes().to_vec());
        assert_eq!(stored(&LogicalType::Double, &["0", "-0", "5"]), doubles);
        // The second and the third are the same float.
        let floats = [5.0f32, 0.3, 0.3, 0.1].map(|v| v.to_le_bytes().to_vec());
        assert_eq!(stored(&LogicalType::Float, &["5", "0.30000001", "0.3", "0.1"]), floats);
        let integer = LogicalType::Integer { bits: 32, signed: true };
        assert_eq!(stored(&integer, &["-0", "7"]), [0i32, 7].map(|v| v.to_le_bytes().to_vec()));
    }

    #[test]
    fn cells_may_be_quoted() {
        let text = "a,b\r\n\"1, \"\"x\"\"\ny\",2\n,\"\"\nlast,";
        let cells = [vec!["a", "b"], vec!["1, \"x\"\ny", "2"], vec!["", ""], vec!["last", ""]];
        assert_eq!(
            records(text).unwrap(),
            cells.map(|row| row.into_iter().map(|c| Some(c.to_owned())).collect::<Vec<_>>())
        );
    }

    #[test]
    fn a_quote_that_is_not_closed_is_named_by_its_line() {
        assert_eq!(records("name\n\"Graz\nLinz\nWien\n"), Err(2));
        assert_eq!(records("a\n\"x\ny\"\n\"z"), Err(4));
    }
}
