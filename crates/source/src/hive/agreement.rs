//! Files with a column that their folders also name: the file's values are used, and must all equal the
//! folder's value.

use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use sawmill_footer::{ColumnChunk, Footer};
use sawmill_inspect::{DEFAULT_MAX_PAGE, check_page_sizes};

use super::FolderName;
use crate::condition::pruning::outlook;
use crate::condition::rows::RowTest;
use crate::condition::{Condition, Literal, Node, Operator};
use crate::parquet_files::guarded::{fault_of_page, guarded};
use crate::parquet_files::reader::FileBytes;

/// A file whose values are compared with its folders.
pub(crate) struct Compared<'a> {
    pub footer: &'a Footer,
    pub file: &'a FileBytes,
    pub reader: &'a ArrowReaderMetadata,
}

impl Compared<'_> {
    /// Rejects a folder whose value differs from the value in a row of the file. Reads row groups whose statistics
    /// do not decide it, but only the columns that folders name.
    ///
    /// # Errors
    /// The folder, and the file's value instead.
    pub(crate) fn check_folders(&self, folders: &[FolderName]) -> Result<(), String> {
        for folder in folders {
            let Ok(field) = self.reader.schema().field_with_name(&folder.column) else { continue };
            let column = folder.column.clone();
            let condition = Condition(match folder.value.as_deref() {
                None => Node::IsNull { column },
                Some(value) => {
                    let literal = match (field.data_type(), value) {
                        (DataType::Boolean, "true" | "True") => Literal::Boolean(true),
                        (DataType::Boolean, "false" | "False") => Literal::Boolean(false),
                        _ => Literal::Text(value.to_owned()),
                    };
                    Node::Compare { column, operator: Operator::Equal, literal }
                }
            });
            self.require(&condition).map_err(|what| {
                let FolderName { column, value } = folder;
                let shown = value.as_ref().map_or_else(|| "null".to_owned(), |value| format!("{value:?}"));
                format!(
                    "its folder says that column {column:?} is {shown}, but the file has the column, too: {what}"
                )
            })?;
        }
        Ok(())
    }

    /// Returns an error for the first row for which the condition is not true.
    fn require(&self, condition: &Condition) -> Result<(), String> {
        let test =
            RowTest::new(condition, self.reader.schema(), &[]).map_err(|error| error.what().to_owned())?;
        for (number, group) in self.footer.row_groups().enumerate() {
            let known = outlook(&test, self.footer, group);
            if known.all || group.num_rows() == 0 {
                continue;
            }
            if !known.some {
                return Err(format!("no row of row group {number} has this value"));
            }
            if let Some(row) = self.first_other(&test, number)? {
                return Err(format!("row {row} of row group {number} has another value"));
            }
        }
        Ok(())
    }

    /// Returns the first row of a row group that does not pass.
    fn first_other(&self, test: &RowTest, group: usize) -> Result<Option<usize>, String> {
        let unreadable = |what: String| format!("row group {group} cannot be read: {what}");
        let is_tested = |chunk: &ColumnChunk<'_>| {
            let schema = self.reader.metadata().file_metadata().schema_descr();
            let field = schema.get_column_root_idx(chunk.leaf());
            chunk.row_group().index() == group && test.columns.iter().any(|column| column.place == field)
        };
        let sizes = check_page_sizes(self.footer, self.file, DEFAULT_MAX_PAGE, u64::MAX, is_tested);
        let (_, headers) = sizes.map_err(|error| unreadable(error.what()))?;
        let file = self.file.clone().corrected(headers);
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.reader.clone());
        let places = test.columns.iter().map(|column| column.place);
        let mask = ProjectionMask::roots(builder.parquet_schema(), places);
        let builder = builder.with_row_groups(vec![group]).with_projection(mask);
        let mut batches = guarded(|| builder.build()).map_err(|error| unreadable(fault_of_page(&error)))?;
        let mut before = 0;
        loop {
            let batch =
                guarded(|| batches.next().transpose()).map_err(|error| unreadable(fault_of_page(&error)))?;
            let Some(batch) = batch else { return Ok(None) };
            let passing = test.rows(&batch).map_err(|error| error.what().to_owned())?;
            if let Some(row) = (0..passing.len()).find(|row| !passing.value(*row)) {
                return Ok(Some(before + row));
            }
            before += passing.len();
        }
    }
}
