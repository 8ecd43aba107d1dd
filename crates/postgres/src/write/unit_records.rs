//! Writes the records of units: one statement for a whole transaction.

use sawmill_loader::Arrived;
use sawmill_source::Result;
use tokio_postgres::{Client, Statement};

use crate::table::catalogue::Link;
use crate::write::plan::WriterPlan;

/// The statement that records units, prepared on a connection.
pub(crate) struct UnitRecorder {
    insert: Statement,
    load_id: String,
}

impl UnitRecorder {
    pub(crate) fn new(plan: &WriterPlan, link: Link<'_>) -> Result<Self> {
        // PostgreSQL's nested arrays are rectangular and unnest to scalars, so each unit's counts are sent as
        // text.
        let insert = format!(
            "INSERT INTO {} (load_id, file, row_group, first_row, rows, content_sum, non_null, part_oid) \
             SELECT $1::text, unit.file, unit.row_group, unit.first_row, unit.rows, unit.content_sum, \
                    unit.non_null::bigint[], $8::bigint \
             FROM unnest($2::int[], $3::int[], $4::bigint[], $5::bigint[], $6::text[], $7::text[]) \
                  AS unit (file, row_group, first_row, rows, content_sum, non_null) \
             WHERE {}",
            plan.checkpoints.units_table(),
            plan.planned.are_there("$8::bigint")
        );
        let insert = link.prepare(&insert)?;
        Ok(Self { insert, load_id: plan.load_id.clone() })
    }

    /// Records units in the open transaction, and the OID of the part table that holds them, if there is one.
    /// Returns false and records nothing if the table's columns no longer match the plan.
    pub(crate) async fn record(
        &self,
        client: &Client,
        units: &[Arrived],
        part: Option<u32>,
    ) -> Result<bool, tokio_postgres::Error> {
        let keys = || units.iter().map(|arrived| arrived.unit.key);
        let tallies = || units.iter().map(|arrived| &arrived.tally);
        let files: Vec<i32> = keys().map(|key| key.file as i32).collect();
        let row_groups: Vec<i32> = keys().map(|key| key.row_group as i32).collect();
        let first_rows: Vec<i64> = keys().map(|key| key.first_row as i64).collect();
        let rows: Vec<i64> = tallies().map(|tally| tally.rows as i64).collect();
        let sums: Vec<String> = tallies().map(|tally| tally.content_sum.to_string()).collect();
        let counts: Vec<String> = tallies().map(|tally| array(&tally.non_null)).collect();
        let part = part.map(i64::from);
        let recorded = client
            .execute(
                &self.insert,
                &[&self.load_id, &files, &row_groups, &first_rows, &rows, &sums, &counts, &part],
            )
            .await?;
        Ok(recorded == units.len() as u64)
    }
}

/// Numbers as a PostgreSQL array literal.
fn array(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    format!("{{{}}}", numbers.join(","))
}
