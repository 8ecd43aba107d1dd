//! How a table stores text: as files have it, or as loads write it.

use sawmill_loader::LoadOptions;
use sawmill_source::{Control, Result};

use crate::connect::client::{Client, Cluster};
use crate::options::{Times, Timestamps};
use crate::records::checkpoint::Checkpoints;
use crate::table::catalogue;
use crate::table::existing::StoredType;
use crate::target::CrateDb;

/// How a table stores text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredText {
    /// The columns that rows fill, in their order, and whether each is text; none without a table.
    pub columns: Vec<(String, bool)>,
    /// Text columns hold times of day as loads write them, since a load has made the table.
    pub times: bool,
    /// The same of days with a time of day.
    pub timestamps: bool,
}

impl CrateDb {
    /// How the table stores text.
    ///
    /// # Errors
    /// No connection, or no permission.
    pub fn columns_of_text(&self, options: &LoadOptions, control: &Control<'_>) -> Result<StoredText> {
        let table = self.table()?;
        let mut client = Client::new(&Cluster::new(&self.server, options.patience, options.retries)?);
        let sql = &mut client.on(control);
        let columns = catalogue::columns(sql, &table)?;
        let row_key = self.options.row_key.as_ref();
        let filled = columns.into_iter().filter(|column| !column.generated && Some(&column.name) != row_key);
        let is_text = |of: &StoredType| match of {
            StoredType::Scalar(name) => name == "text",
            StoredType::Varchar(_) => true,
            _ => false,
        };
        let columns: Vec<(String, bool)> =
            filled.map(|column| (column.name, is_text(&column.data_type))).collect();
        let checkpoints = Checkpoints::new(&self.checkpoint_schema);
        let mut records = checkpoints.on(sql);
        let is_made = columns.iter().any(|(_, is_text)| *is_text)
            && records.exist()?
            && records.of_table(&table.to_string())?.iter().any(|row| row.load.made_the_table());
        let times = is_made && self.options.times == Times::Text;
        Ok(StoredText { columns, times, timestamps: is_made && self.options.timestamps == Timestamps::Text })
    }
}
