//! Batches of rows, with the faults that are planned for them.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::request::Request;
use super::response::{End, refused, results};
use crate::cluster::Shared;
use crate::fault::Fault;
use crate::json::Json;
use crate::store::{RowResult, error};

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
    let mut most = usize::MAX;
    let every_row =
        |code: u32, what: &str| results(&vec![RowResult::Refused(code, what.to_owned()); rows.len()]);
    match fault {
        Some(Fault::DropBefore) => return Err(End::Cut),
        Some(Fault::Unavailable) => return Ok(refused(&error(503, 5030, "Cluster unavailable"))),
        Some(Fault::Busy) => return Ok(refused(&error(429, 4290, "too many requests"))),
        Some(Fault::TooManyShards) => {
            let limit = "Validation Failed: 1: this action would add [4] total shards, but this cluster currently has \
                         [999]/[1000] maximum shards open;";
            return Ok(refused(&error(400, 4000, format!("SQLParseException[{limit}]"))));
        }
        Some(Fault::Slow(time)) => std::thread::sleep(time),
        Some(Fault::DropInTheMiddle | Fault::Restart(..)) => most = rows.len() / 2,
        Some(Fault::Disappear) => {
            shared.stop(node);
            return Err(End::Cut);
        }
        Some(Fault::Late(time)) => {
            let (statement, schema, rows) = (statement.to_owned(), request.schema.clone(), rows.to_vec());
            shared.later(move |shared| {
                std::thread::sleep(time);
                // The client is gone. By now the answer may be that the table is unknown.
                let _ = shared.engine.bulk(&statement, &schema, &rows, usize::MAX);
            });
            return Err(End::Cut);
        }
        Some(Fault::Orphan(time)) => {
            let half = rows.len() / 2;
            let (statement, schema, rest) =
                (statement.to_owned(), request.schema.clone(), rows[half..].to_vec());
            // As above.
            let _ = shared.engine.bulk(&statement, &schema, &rows[..half], usize::MAX);
            run_on(shared, statement, schema, rest, time);
            return Err(End::Cut);
        }
        Some(Fault::Echo(time)) => {
            run_on(shared, statement.to_owned(), request.schema.clone(), rows.to_vec(), time);
        }
        // The client gets the second of both answers.
        Some(Fault::Twice) => drop(shared.engine.bulk(statement, &request.schema, rows, usize::MAX)),
        Some(Fault::LostShard) => return Ok(every_row(5002, "One or more shards are not available")),
        Some(Fault::Blocked) => {
            let block = "RELATION_READ_DELETE_ONLY/12/index read-only / allow delete (api)";
            return Ok(every_row(4037, &format!("ClusterBlockException[blocked by: [{block}];]")));
        }
        Some(Fault::DropAfter | Fault::Silent) | None => {}
    }
    shared.row_cost.spend(rows.len());
    let inserted = shared.engine.bulk(statement, &request.schema, rows, most);
    match fault {
        Some(Fault::Restart(away, recovering)) => {
            shared.restart(node, away, recovering);
            Err(End::Cut)
        }
        Some(Fault::DropAfter | Fault::DropInTheMiddle) => Err(End::Cut),
        Some(Fault::Silent) => Err(End::Silent),
        _ => Ok(match inserted {
            Ok(rows) => results(&rows),
            Err(error) => refused(&error),
        }),
    }
}

/// Has a request without its connection go on for so long, and then insert these rows, unless it was killed.
fn run_on(shared: &Shared, statement: String, schema: String, rows: Vec<Vec<Json>>, time: Duration) {
    let Ok(planned) = shared.engine.planned(&statement, &schema) else { return };
    shared.later(move |shared| {
        if !shared.engine.jobs().run_for(&statement, time) {
            // Its answer has no reader.
            let _ = shared.engine.bulk_planned(&statement, &schema, &rows, &planned);
        }
    });
}
