//! Batches of rows, with the faults that are planned for them.

use std::sync::atomic::Ordering::Relaxed;

use super::request::Request;
use super::response::{refused, results};
use crate::cluster::{Batch, End, Shared};
use crate::fault::Fault;
use crate::json::Json;
use crate::store::{RowResult, complete, error};

/// Inserts the rows of a request, unless the planned fault prevents it.
pub(super) fn respond(
    shared: &Shared,
    node: usize,
    request: &Request,
    statement: &str,
    rows: &[Vec<Json>],
) -> Result<(u16, String), End> {
    shared.bulks.fetch_add(1, Relaxed);
    shared.largest.fetch_max(request.body.len(), Relaxed);
    let fault = shared.faults.take();
    let every_row =
        |code: u32, what: &str| Ok(results(&vec![RowResult::Refused(code, what.to_owned()); rows.len()]));
    match fault {
        Some(Fault::Unavailable) => return Ok(refused(&error(503, 5030, "Cluster unavailable"))),
        Some(Fault::Busy) => return Ok(refused(&error(429, 4290, "too many requests"))),
        Some(Fault::TooManyShards) => {
            let limit = "Validation Failed: 1: this action would add [4] total shards, but this cluster currently has \
                         [999]/[1000] maximum shards open;";
            return Ok(refused(&error(400, 4000, format!("SQLParseException[{limit}]"))));
        }
        Some(Fault::Disappear) => {
            shared.stop(node);
            return Err(End::Cut);
        }
        Some(Fault::LostShard) => return every_row(5002, "One or more shards are not available"),
        Some(Fault::Blocked) => {
            let block = "RELATION_READ_DELETE_ONLY/12/index read-only / allow delete (api)";
            return every_row(4037, &format!("ClusterBlockException[blocked by: [{block}];]"));
        }
        _ => {}
    }
    let inserted = match complete(statement, &request.schema, rows) {
        Ok((name, columns, rows, conflict)) => {
            let (statement, schema) = (statement.to_owned(), request.schema.clone());
            shared.insert(node, fault, Batch { statement, schema, name, columns, rows, conflict })?
        }
        Err(error) => Err(error),
    };
    Ok(inserted.map_or_else(|error| refused(&error), |rows| results(&rows)))
}
