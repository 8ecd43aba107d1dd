//! `sawmill-cluster submit footer`.

use std::sync::Arc;

use datafusion::error::Result;

use crate::cluster::arguments::{Level, SubmitFooterArgs};
use crate::cluster::output;
use crate::cluster::session::job_session;
use crate::{FooterLevel, FooterTable};

/// Reads the footers on the executors, and prints their rows.
pub(crate) async fn footer(args: SubmitFooterArgs) -> Result<()> {
    let level = match args.level {
        Level::Chunk => FooterLevel::Chunk,
        Level::RowGroup => FooterLevel::RowGroup,
        Level::File => FooterLevel::File,
    };
    let table = FooterTable::new(&args.files, level)?;
    let context = job_session(&args.cluster).await?;
    let rows = context.read_table(Arc::new(table))?.execute_stream().await?;
    output::print(rows, args.printed.format()).await
}
