//! `sawmill-cluster submit`: jobs whose units of work are placed by the engine.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::{concat_batches, sort_to_indices, take_record_batch};
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use sawmill_generator::{Dataset, DatasetName, NamedRows, WrittenFile};
use sawmill_profile::format_counted;

use crate::cluster::arguments::{DatasetArgs, Format, SubmitGenArgs};
use crate::cluster::output;
use crate::cluster::session::job_session;
use crate::error::{external, refused};
use crate::found_files;
use crate::generated::files::{FILES_SCHEMA, GeneratedFiles};
use crate::generated::spec::Spec;
use crate::units::job::JobTable;

/// Makes the files of a dataset or of all its tables, completes them, and prints a row for each file.
pub(crate) async fn generate(args: SubmitGenArgs) -> Result<()> {
    let context = job_session(&args.cluster).await?;
    let (mut rows, mut summaries) = (Vec::new(), Vec::new());
    for dataset in datasets(args.dataset)? {
        let made = files(&context, &dataset).await?;
        rows.push(made.rows);
        summaries.push(made.summary);
    }
    output::print_batch(concat_batches(&FILES_SCHEMA, &rows)?, args.printed.format()).await?;
    if args.printed.format() == Format::Table {
        output::say(&summaries.join("\n"))?;
    }
    Ok(())
}

/// The dataset, or each table of one with several tables, in a folder of the table's name.
///
/// # Errors
/// A table is not valid, which is reported before the first file is made; the arguments do not fit several tables.
fn datasets(args: DatasetArgs) -> Result<Vec<DatasetArgs>> {
    if args.out == "-" || (args.out.ends_with(".parquet") && !Path::new(&args.out).is_dir()) {
        let advice = "name a folder, or make a single file with sawmill gen";
        return Err(refused("a job makes a folder of files", &args.out, advice));
    }
    let name = DatasetName::new(&args.spec);
    let tables = name.tables().map_err(external)?;
    if tables.is_empty() {
        return Ok(vec![args]);
    }
    if args.rows.is_some() {
        let one = tables.first().map(|table| name.table(table)).unwrap_or_default();
        let advice = format!("multiply the rows of all tables by --scale, or generate a table alone: {one}");
        return Err(refused(format!("--rows cannot be used for all tables of {name}"), &args.out, &advice));
    }
    let of_table = |table: &String| {
        let (spec, out) = (name.table(table), format!("{}/{table}", args.out.trim_end_matches('/')));
        let dataset = Dataset::named(&spec, args.scale).map_err(external)?;
        dataset.rows_and_seed(None, args.seed).map_err(external)?;
        Ok(DatasetArgs { spec, out, compression: args.compression.clone(), ..args })
    };
    tables.iter().map(of_table).collect()
}

/// The files of a job.
pub(crate) struct MadeFiles {
    /// A row for each file, in their order.
    pub rows: RecordBatch,
    /// A sentence about the files made.
    pub summary: String,
}

/// Makes the files on the executors of `context`. Then this process compares them with their manifests, and
/// replaces the manifests by a single one of the whole dataset.
///
/// # Errors
/// A file cannot be written, or the folder is not the same one here as for the executors.
pub(crate) async fn files(context: &SessionContext, args: &DatasetArgs) -> Result<MadeFiles> {
    let (spec, dataset) = Spec::read(&args.spec, args.scale)?;
    let asked = NamedRows { rows: args.rows, seed: args.seed, ..NamedRows::default() };
    let (rows, seed) = asked.rows_and_seed(&dataset).map_err(external)?;
    let folder = found_files::absolute(&args.out)?;
    let files = GeneratedFiles::new((spec, &dataset), (rows, args.files, seed), &args.compression, folder)?;
    let table = context.read_table(Arc::new(JobTable(files.clone())))?;
    let batches = table.collect().await?;
    let made = concat_batches(&FILES_SCHEMA, &batches)?;
    let order = sort_to_indices(made.column(0), None, None)?;
    let made = take_record_batch(&made, &order)?;
    let in_store = files.is_in_store()?;
    let whole = complete(files, dataset, &made).await?;
    let kept = made.column(5).as_boolean().true_count();
    let total: u64 = whole.iter().map(|file| file.rows).sum();
    let summary = format!(
        "{} with {} in {}: {} made, {kept} kept, all compared with their {}",
        format_counted(whole.len() as u64, "file"),
        format_counted(total, "row"),
        args.out,
        whole.len() - kept,
        if in_store { "sizes and ETags" } else { "checksums" },
    );
    Ok(MadeFiles { rows: made, summary })
}

/// Compares the files with their manifests, and writes the manifest of the whole dataset.
async fn complete(
    files: GeneratedFiles,
    dataset: Arc<Dataset>,
    made: &RecordBatch,
) -> Result<Vec<WrittenFile>> {
    let in_store = files.is_in_store()?;
    let (paths, sums) = (made.column(1).as_string::<i32>(), made.column(4).as_string::<i32>());
    let is_missing = |path: &&str| !Path::new(path).is_file();
    if let Some(missing) = paths.iter().flatten().find(is_missing).filter(|_| !in_store) {
        let advice =
            "give a folder that the executors and this process share, and run the same command again";
        return Err(refused(
            "an executor has made a file that is not there for this process",
            missing,
            advice,
        ));
    }
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let whole = tokio::task::spawn_blocking(move || files.finish(&dataset, threads));
    let whole = whole.await.map_err(external)??;
    for (file, (path, sum)) in whole.iter().zip(paths.iter().zip(sums)) {
        if file.sum.map(|sum| sum.to_string()).as_deref() != sum {
            let advice = "another program writes to the folder: end it, and run the same command again";
            return Err(refused(
                "a file is not the one that an executor made",
                path.unwrap_or_default(),
                advice,
            ));
        }
    }
    Ok(whole)
}
