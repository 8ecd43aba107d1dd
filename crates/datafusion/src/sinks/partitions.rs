//! The partitions of a query, run side by side until all end or one fails.

use std::future::Future;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures_util::StreamExt;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::error::external;

/// Consumes the rows of one partition.
pub(crate) trait Taker: Send + Sized + 'static {
    /// Takes a batch; returns `None` if no more are wanted.
    ///
    /// # Errors
    /// The rows cannot be taken.
    fn take(self, batch: RecordBatch) -> impl Future<Output = Result<Option<Self>>> + Send;

    /// Ends the partition: all rows have arrived.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    fn end(self) -> impl Future<Output = Result<()>> + Send;
}

/// Runs all partitions of `rows`, each with a separate taker. If one fails, the others end after their current
/// batch. Nothing runs any more when this returns.
///
/// # Errors
/// The error of the first partition that failed.
pub(crate) async fn run<T: Taker>(
    rows: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
    taker: impl Fn(usize) -> T,
) -> Result<()> {
    let (stop, stopped) = watch::channel(false);
    let mut partitions = JoinSet::new();
    // Either all partitions begin, or none.
    let all = 0..rows.output_partitioning().partition_count();
    let begun = all.map(|partition| rows.execute(partition, Arc::clone(context)));
    for (partition, rows) in begun.collect::<Result<Vec<_>>>()?.into_iter().enumerate() {
        partitions.spawn(feed(rows, taker(partition), stopped.clone()));
    }
    let mut failed = Ok(());
    while let Some(done) = partitions.join_next().await {
        let done = done.map_err(external).and_then(|done| done);
        if done.is_err() && failed.is_ok() {
            failed = done;
            // Partitions that have ended do not listen any more.
            let _ = stop.send(true);
        }
    }
    failed
}

async fn feed<T: Taker>(
    mut rows: SendableRecordBatchStream,
    mut taker: T,
    mut stopped: watch::Receiver<bool>,
) -> Result<()> {
    loop {
        let batch = tokio::select! {
            batch = rows.next() => batch,
            _ = stopped.changed() => return Ok(()),
        };
        match batch {
            None => return taker.end().await,
            Some(batch) => match taker.take(batch?).await? {
                Some(again) => taker = again,
                None => return Ok(()),
            },
        }
    }
}
