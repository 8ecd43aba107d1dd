//! `sawmill-cluster sql`.

use datafusion::error::Result;

use crate::cluster::arguments::SqlArgs;
use crate::cluster::output;
use crate::cluster::session::{local_session, remote_session};
use crate::register_postgres;

/// Runs the statement and prints its rows.
pub(crate) async fn run(args: SqlArgs) -> Result<()> {
    let partitions = args.partitions.map(|partitions| partitions as usize);
    let context = match &args.scheduler {
        Some(url) => remote_session(url, partitions).await?,
        None => local_session(partitions)?,
    };
    if let Some(address) = &args.to {
        register_postgres(&context, address)?;
    }
    let rows = crate::sql(&context, &args.sql).await?.execute_stream().await?;
    output::print(rows, args.printed.format()).await
}
