//! The job that loads parts: a row for each part.
//!
//! A unit of the loader commits together with its record in the database, so that a part that is repeated loads what
//! is missing of it. Two tasks never load one part at a time: the second waits for the lock of the first.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::internal_datafusion_err;
use datafusion::error::Result;
use sawmill_loader::{LoadOptions, LoadReport, Part, Share, load};
use sawmill_postgres::Postgres;
use sawmill_profile::Profile;
use sawmill_source::Control;
use serde::{Deserialize, Serialize};

use crate::error::{external, refused};
use crate::sinks::loads::source::LoadSource;
use crate::units::job::{Job, numbers_of};
use crate::units::work::{SendBatch, Work, WorkDescription};

/// A load into a table of PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartedLoad {
    source: LoadSource,
    /// The address of the server, without a password.
    to: String,
    table: String,
    parts: u32,
}

impl PartedLoad {
    /// A load in `parts` parts.
    ///
    /// # Errors
    /// The address has a password, which would travel in the plan; there are too many parts.
    pub(crate) fn new(source: LoadSource, to: &str, table: &str, parts: u32) -> Result<Self> {
        let user =
            to.split_once("://").and_then(|(_, rest)| rest.split_once('@')).map_or("", |(user, _)| user);
        if user.contains(':') || to.to_lowercase().contains("password=") {
            let advice =
                "leave it out, and set PGPASSWORD for each executor and for this process, or use ~/.pgpass";
            return Err(refused("a password in an address would be in the plan of the job", "--to", advice));
        }
        if Part::new(1, parts).is_none() {
            let advice = format!("give 1 to {}", Part::MAX);
            return Err(refused("there cannot be so many parts", &parts.to_string(), &advice));
        }
        Ok(Self { source, to: to.to_owned(), table: table.to_owned(), parts })
    }

    /// Does a share of the load over `connections` connections.
    ///
    /// # Errors
    /// The source cannot be read, the server refuses, or parts are missing when the load is finished.
    pub(crate) fn load(&self, share: Share, connections: usize, verify: bool) -> Result<LoadReport> {
        let source = self.source.open()?;
        let target = Postgres::new(self.to.parse().map_err(external)?, self.table.parse().map_err(external)?);
        let (profile, cancel) = (Profile::new(), false.into());
        let phase = profile.phase("load");
        let options = LoadOptions { degree: connections, share, verify, ..LoadOptions::default() };
        load(source.as_ref(), &target, &options, &Control::new(&cancel, &phase)).map_err(external)
    }
}

/// The schema of the result, which has a row for each part.
pub(crate) static PARTS_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let field = |name: &str| Field::new(name, DataType::Int64, false);
    let names = ["part", "units", "rows", "units_there_before", "rows_loaded", "reconnections"];
    Arc::new(Schema::new(names.map(field).to_vec()))
});

impl Work for PartedLoad {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&PARTS_SCHEMA)
    }

    fn rows(&self, units: &RecordBatch) -> Option<u64> {
        Some(units.num_rows() as u64)
    }

    fn run(&self, units: &RecordBatch, _: usize, send: SendBatch<'_>) -> Result<()> {
        for unit in numbers_of(units)? {
            let number = unit.saturating_add(1);
            let part = Part::new(number, self.parts);
            let part =
                part.ok_or_else(|| internal_datafusion_err!("there is no part {number} of the load"))?;
            let report = self.load(Share::Part(part), 1, false)?;
            let told = [
                u64::from(number),
                report.units,
                report.rows,
                report.units_resumed,
                report.rows_loaded,
                report.retries,
            ];
            let columns = told.map(|number| Arc::new(Int64Array::from(vec![number as i64])) as ArrayRef);
            if !send(RecordBatch::try_new(Arc::clone(&PARTS_SCHEMA), columns.to_vec())?) {
                break;
            }
        }
        Ok(())
    }

    fn description(&self) -> WorkDescription {
        WorkDescription::Load(self.clone())
    }

    fn explained(&self) -> String {
        format!("PartedLoad: table={}, parts={}", self.table, self.parts)
    }
}

impl Job for PartedLoad {
    fn work(self) -> Result<Arc<dyn Work>> {
        Ok(Arc::new(self))
    }

    fn schema() -> SchemaRef {
        Arc::clone(&PARTS_SCHEMA)
    }

    fn units(&self) -> u32 {
        self.parts
    }
}
