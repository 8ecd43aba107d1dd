//! Where the server keeps the records of loads.

use clap::Args;
use sawmill_cratedb::CrateDb;
use sawmill_postgres::Postgres;

use crate::arguments::target::Destination;

/// The schema of the records.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connections")]
pub(crate) struct RecordArgs {
    /// The schema that holds the records of loads; created if it does not exist. Give the same schema to
    /// load, status and forget [default: _sawmill, CrateDB sawmill].
    #[arg(long, value_name = "NAME")]
    checkpoint_schema: Option<String>,
}

impl RecordArgs {
    /// The destination with its records in this schema.
    pub(crate) fn apply(&self, destination: Destination) -> Destination {
        let Some(schema) = &self.checkpoint_schema else { return destination };
        destination.with(
            |postgres| postgres.checkpoint_schema(schema),
            |crate_db| crate_db.checkpoint_schema(schema),
        )
    }

    /// The schema in PostgreSQL.
    pub(crate) fn schema(&self) -> &str {
        self.checkpoint_schema.as_deref().unwrap_or(Postgres::CHECKPOINT_SCHEMA)
    }

    /// The schema in CrateDB.
    pub(crate) fn crate_schema(&self) -> &str {
        self.checkpoint_schema.as_deref().unwrap_or(CrateDb::CHECKPOINT_SCHEMA)
    }
}
