//! Rows on standard output.

use std::io::{self, BufWriter, Write};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::LineDelimitedWriter;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures_util::StreamExt;

use crate::cluster::arguments::Format;
use crate::error::refused;

/// The maximum rows of a table, which is drawn when its last row has arrived.
const TABLE_ROWS: usize = 10_000;

/// Prints rows as they arrive, or as a table.
///
/// # Errors
/// The query fails, or standard output cannot be written.
pub(crate) async fn print(rows: SendableRecordBatchStream, format: Format) -> Result<()> {
    let out = BufWriter::new(io::stdout().lock());
    let printed = match format {
        Format::Table => table(rows, out).await,
        Format::Json => json(rows, out).await,
        Format::Csv => csv(rows, out).await,
    };
    match printed {
        // The reader of a pipe, such as `head`, has enough.
        Err(error) if is_broken_pipe(&error) => Ok(()),
        other => other,
    }
}

/// Prints the rows of one batch.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) async fn print_batch(rows: RecordBatch, format: Format) -> Result<()> {
    let (schema, rows) = (rows.schema(), futures_util::stream::iter([Ok(rows)]));
    print(Box::pin(RecordBatchStreamAdapter::new(schema, rows)), format).await
}

/// Prints a line. A reader that went away has read enough.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn say(line: &str) -> Result<()> {
    match writeln!(io::stdout(), "{line}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

fn is_broken_pipe(error: &DataFusionError) -> bool {
    let of = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    match error.find_root() {
        DataFusionError::IoError(error) => of(error),
        DataFusionError::ArrowError(error, _) => {
            matches!(error.as_ref(), ArrowError::IoError(_, error) if of(error))
        }
        _ => false,
    }
}

async fn table(mut rows: SendableRecordBatchStream, mut out: impl Write) -> Result<()> {
    let schema = rows.schema();
    let (mut shown, mut left): (Vec<RecordBatch>, usize) = (Vec::new(), TABLE_ROWS);
    let mut more = false;
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        more = batch.num_rows() > left;
        shown.push(batch.slice(0, batch.num_rows().min(left)));
        left -= batch.num_rows().min(left);
        if more {
            break;
        }
    }
    if shown.is_empty() {
        shown.push(RecordBatch::new_empty(schema));
    }
    writeln!(out, "{}", pretty_format_batches(&shown)?)?;
    if more {
        writeln!(out, "These are the first {TABLE_ROWS} rows; --json and --csv print all.")?;
    }
    Ok(out.flush()?)
}

async fn json(mut rows: SendableRecordBatchStream, out: impl Write) -> Result<()> {
    let mut writer = LineDelimitedWriter::new(out);
    while let Some(batch) = rows.next().await {
        writer.write(&batch?)?;
    }
    writer.finish()?;
    Ok(writer.into_inner().flush()?)
}

async fn csv(mut rows: SendableRecordBatchStream, out: impl Write) -> Result<()> {
    if let Some(field) = rows.schema().fields().iter().find(|field| field.data_type().is_nested()) {
        let advice = "select its parts, or print --json";
        return Err(refused("comma-separated values cannot hold nested columns", field.name(), advice));
    }
    let mut writer = WriterBuilder::new().with_header(true).build(out);
    // The header is written even without rows.
    writer.write(&RecordBatch::new_empty(rows.schema()))?;
    while let Some(batch) = rows.next().await {
        writer.write(&batch?)?;
    }
    Ok(writer.into_inner().flush()?)
}
