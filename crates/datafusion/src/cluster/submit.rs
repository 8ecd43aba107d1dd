//! `sawmill-cluster submit`: jobs whose units of work are placed by the engine.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::{concat_batches, sort_to_indices, take_record_batch};
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use sawmill_generator::{Dataset, Part, WrittenFile};
use sawmill_profile::format_counted;

use crate::cluster::arguments::{DatasetArgs, Format, SubmitGenArgs};
use crate::cluster::output;
use crate::cluster::session::{local_session, remote_session};
use crate::error::{external, refused};
use crate::generated::files::{FILES_SCHEMA, GeneratedFiles};
use crate::generated::spec::Spec;
use crate::units::job::JobTable;

/// Makes the files, completes the dataset, and prints a row for each file.
pub(crate) async fn generate(args: SubmitGenArgs) -> Result<()> {
    let context = match &args.scheduler {
        Some(url) => remote_session(url, None).await?,
        None => local_session(None)?,
    };
    let made = files(&context, &args.dataset).await?;
    output::print_batch(made.rows, args.printed.format()).await?;
    if args.printed.format() == Format::Table {
        println!("{}", made.summary);
    }
    Ok(())
}

/// The files of a job.
pub(crate) struct MadeFiles {
    /// A row for each file, in their order.
    pub rows: RecordBatch,
    /// What was made, in a sentence.
    pub summary: String,
}

/// Makes the files on the executors of `context`. Then this process compares all of them with their manifests, and
/// replaces those by that of the whole dataset.
///
/// # Errors
/// A file cannot be written, or the folder is not the same one here as for the executors.
pub(crate) async fn files(context: &SessionContext, args: &DatasetArgs) -> Result<MadeFiles> {
    let (spec, dataset) = Spec::read(&args.spec, None)?;
    let Some(rows) = args.rows.or(dataset.rows()) else {
        return Err(refused("the number of rows is missing", &args.spec, "give it with --rows"));
    };
    let folder = std::path::absolute(&args.out)?.into_os_string().into_string().map_err(|path| {
        refused("the folder cannot be used", &path.to_string_lossy(), "give --out a Unicode path")
    })?;
    let files =
        GeneratedFiles::new((spec, &dataset), (rows, args.files, args.seed), &args.compression, folder)?;
    let table = context.read_table(Arc::new(JobTable(files.clone())))?;
    let batches = table.collect().await?;
    let made = concat_batches(&FILES_SCHEMA, &batches)?;
    let order = sort_to_indices(made.column(0), None, None)?;
    let made = take_record_batch(&made, &order)?;
    let whole = complete(files, dataset, &made).await?;
    let kept = made.column(5).as_boolean().true_count();
    let total: u64 = whole.iter().map(|file| file.rows).sum();
    let summary = format!(
        "{} with {} in {}: {} made, {kept} kept, all compared with their checksums",
        format_counted(whole.len() as u64, "file"),
        format_counted(total, "row"),
        args.out.display(),
        whole.len() - kept,
    );
    Ok(MadeFiles { rows: made, summary })
}

/// Compares the files with their manifests, and writes that of the whole dataset.
async fn complete(files: GeneratedFiles, dataset: Arc<Dataset>, made: &RecordBatch) -> Result<Vec<WrittenFile>> {
    let (paths, sums) = (made.column(1).as_string::<i32>(), made.column(4).as_string::<i32>());
    if let Some(missing) = paths.iter().flatten().find(|path| !Path::new(path).is_file()) {
        let advice =
            "give a folder that the executors and this process share, and run the same command again";
        return Err(refused(
            "an executor has made a file that is not there for this process",
            missing,
            advice,
        ));
    }
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let whole = tokio::task::spawn_blocking(move || files.write(&dataset, Part::WHOLE, threads));
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
