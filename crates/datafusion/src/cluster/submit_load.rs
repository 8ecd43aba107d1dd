//! `sawmill-cluster submit load`.

use std::num::NonZeroUsize;
use std::sync::Arc;

use datafusion::arrow::compute::{concat_batches, sort_to_indices, take_record_batch};
use datafusion::error::Result;
use sawmill_loader::Share;
use sawmill_profile::format_counted;

use crate::cluster::arguments::{Format, SubmitLoadArgs};
use crate::cluster::output;
use crate::cluster::session::job_session;
use crate::error::external;
use crate::sinks::loads::parts::{PARTS_SCHEMA, PartedLoad};
use crate::sinks::loads::source::LoadSource;
use crate::units::job::JobTable;

/// Loads the parts on the executors, finishes the load in this process, and prints a row for each part.
pub(crate) async fn load(args: SubmitLoadArgs) -> Result<()> {
    let load = PartedLoad::new(LoadSource::named(&args.source)?, &args.to, &args.table, args.parts)?;
    let context = job_session(&args.cluster).await?;
    let batches = context.read_table(Arc::new(JobTable(load.clone())))?.collect().await?;
    let parts = concat_batches(&PARTS_SCHEMA, &batches)?;
    let parts = take_record_batch(&parts, &sort_to_indices(parts.column(0), None, None)?)?;
    let connections = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let verify = args.verify;
    let finished = tokio::task::spawn_blocking(move || load.load(Share::Finish, connections, verify));
    let report = finished.await.map_err(external)??;
    output::print_batch(parts, args.printed.format()).await?;
    if args.printed.format() == Format::Table {
        let verified = match (report.verified.is_some(), verify) {
            (true, _) => ", verified",
            (false, true) => ", not verified",
            (false, false) => "",
        };
        let (rows, sum) = (format_counted(report.rows, "row"), report.content.content_sum);
        output::say(&format!("{rows} in table {}, content sum {sum}{verified}", args.table))?;
    }
    Ok(())
}
