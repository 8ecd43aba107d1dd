//! `sawmill-cluster submit footer`.

use std::sync::Arc;

use datafusion::error::Result;

use crate::FooterTable;
use crate::cluster::arguments::SubmitFooterArgs;
use crate::cluster::output;
use crate::cluster::session::job_session;

/// Reads the footers on the executors, and prints their rows.
pub(crate) async fn footer(args: SubmitFooterArgs) -> Result<()> {
    let table = FooterTable::new(&args.files, args.level)?;
    let context = job_session(&args.cluster).await?;
    let rows = context.read_table(Arc::new(table))?.execute_stream().await?;
    output::print(rows, args.printed.format()).await
}
