//! `sawmill bench footer`: opens files, reads and decodes their footers, one file after the other.

use crate::bench::case::{Beside, Done, Measured, Measurement};
use crate::bench::plan::PlanArgs;
use crate::error::Result;
use crate::footer::FooterArgs;
use crate::footer::place::{Place, Places};
use crate::interrupt;
use clap::{Arg, Args};

/// Measure opening files and decoding their footers.
#[derive(Args, Debug)]
#[command(
    mut_args(without_views),
    after_help = "\
Examples:
  sawmill bench footer /data/trips
  sawmill bench footer wide.parquet --column 'a.*' --tail-hint 4096,65536,1048576
  sawmill bench footer s3://bucket/trips --tail-hint 16384,65536
  sawmill bench footer /data/trips --against 'python3 footers.py /data/trips'

The footers are decoded one after the other and nothing is printed, so views are not available. Another
program can report its work in the last line of its output, to be compared with ours:
  {\"checksum\": \"2 files, 2000 rows, 2 row groups\"}"
)]
pub(crate) struct FooterBench {
    #[command(flatten)]
    job: FooterArgs,
    #[command(flatten)]
    pub plan: PlanArgs,
}

/// Hides the views, which a benchmark refuses because it prints none.
fn without_views(arg: Arg) -> Arg {
    let is_view = matches!(arg.get_help_heading(), Some("Views" | "Checks" | "Formats"));
    arg.hide(is_view)
}

pub(crate) fn measure(args: &FooterBench, measurement: &Measurement<'_>) -> Result<Measured> {
    let (Places { places: files, objects }, opening) = args.job.without_views()?;
    let folder = files.iter().take(1).filter_map(|file| match file {
        Place::Path(file) => file.parent(),
        Place::Object(_) | Place::StandardInput(_) => None,
    });
    let folder = folder.map(|folder| if folder.as_os_str().is_empty() { ".".into() } else { folder.into() });
    measurement.case(Beside { server: None, folders: folder.collect() }, |profile| {
        let phase = profile.phase("footers");
        let attached = phase.attach("main");
        let (mut rows, mut row_groups) = (0i64, 0);
        for file in &files {
            interrupt::check()?;
            let span = sawmill_profile::span("open, read and decode");
            let (summary, ..) = opening.open(file, &objects)?;
            rows = rows.saturating_add(summary.rows);
            row_groups += summary.row_groups;
            span.add_bytes(summary.footer_bytes as u64);
            phase.add_bytes(summary.footer_bytes as u64);
        }
        drop(attached);
        let phase = phase.finish();
        // No rows are read, so no rate is reported: their number only shows that the work was the same.
        let checksum = format!("{} files, {rows} rows, {row_groups} row groups", files.len());
        Ok(Done { bytes: phase.bytes, phase, rows: None, stored: None, checksum: Some(checksum) })
    })
}
