//! `sawmill demo`: the main job from end to end, with everything removed afterwards.

mod directory;

use std::path::{Path, PathBuf};

use clap::Args;
use sawmill_generator::{Dataset, Job, Layout, Output, WrittenFile};
use sawmill_inspect::{FooterSummary, summary_table};
use sawmill_loader::{LoadOptions, LoadReport, TableName, Verification};
use sawmill_localpg::{Binaries, DownloadProgress, LocalPg};
use sawmill_postgres::{Postgres, forget, verify};
use sawmill_profile::{PhaseReport, Profile};
use sawmill_source::ParquetFiles;
use serde::Serialize;

use crate::arguments::target;
use crate::error::{Error, Result};
use crate::r#gen;
use crate::load::load_files;
use crate::screen::console::Console;
use crate::screen::phases::{self, thousands};
use crate::verify as verification;
use crate::{footer, forms, interrupt};
use directory::Directory;

/// Generate a dataset, read its footers, load it into PostgreSQL, and verify it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sawmill demo
  sawmill demo --rows 10M --files 8
  sawmill demo --keep                       # leaves the server running, and prints how to query and stop it
  sawmill demo --to postgres://me@localhost/db
  sawmill demo --rows 100k --out /tmp/contacts --json

Without --to, the demo starts a private PostgreSQL: an installed one (found by SAWMILL_PG_BIN, pg_config, PATH or
in the usual directories), or one that it downloads once. The server runs without fsync, because its data is
temporary. However the demo ends, it removes everything it made, except what --out and --keep retain.")]
pub(crate) struct DemoArgs {
    /// How many records of the contacts dataset to generate.
    #[arg(long, default_value = "1M", value_parser = phases::count)]
    rows: u64,
    /// How many Parquet files to write.
    #[arg(long, default_value_t = 4)]
    files: u32,
    /// Write the files to this directory and keep them.
    #[arg(long = "out", value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The seed of the dataset.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Load into this server instead of starting one.
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// The table to create.
    #[arg(long, default_value = "contacts")]
    table: String,
    /// Keep the table, and leave the server running.
    #[arg(long)]
    keep: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct DemoResult {
    generated: Vec<WrittenFile>,
    footers: Vec<FooterSummary>,
    #[serde(flatten)]
    loaded: Loaded,
    phases: Vec<PhaseReport>,
}

/// The result of the second half of the job.
#[derive(Serialize)]
struct Loaded {
    load: LoadReport,
    verification: Verification,
    kept: Option<Kept>,
}

/// How to reach the kept server, and how to stop it.
#[derive(Serialize)]
struct Kept {
    /// `...` for an address with a password.
    url: String,
    psql: String,
    /// The command that stops the server and removes its data; `None` for the user's own server.
    stop: Option<String>,
}

impl Kept {
    fn new(url: String, stop: Option<String>, table: &TableName) -> Self {
        let query = format!("select * from {} limit 10", table.quoted());
        let psql = format!("psql {} -c {}", shell_word(&url), shell_word(&query));
        Kept { url, psql, stop }
    }
}

/// Quotes a word for a shell.
fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

pub(crate) fn run(args: &DemoArgs, console: Console) -> Result<()> {
    let profile = Profile::new();
    let layout = Layout::new(args.rows, args.files)?;
    // Reject a wrong name or address before making anything.
    let table: TableName = args.table.parse()?;
    let own_server = args.to.as_ref().map(|url| Ok::<_, Error>((url, target::postgres(url, &args.table)?)));
    let own_server = own_server.transpose()?;
    let directory = Directory::new(args.dir.as_deref())?;
    let (generated, footers) = make_files(args, &layout, directory.path(), &profile, console)?;
    console.text(&(summary_table(&footers, &footer::style(console)) + "\n"))?;
    let paths: Vec<PathBuf> = generated.iter().map(|file| file.path.clone()).collect();
    let job = LoadJob { paths: &paths, profile: &profile, console };
    let loaded = match own_server {
        Some((url, target)) => job.into_own_server(url, &target, &table, args)?,
        None => job.into_local_server(&table, args)?,
    };
    directory.close()?;
    let result = DemoResult { generated, footers, loaded, phases: profile.phases() };
    console.result(&result, || text(&result, args))
}

/// The first half of the job: the files and their footers.
fn make_files(
    args: &DemoArgs,
    layout: &Layout,
    directory: &Path,
    profile: &Profile,
    console: Console,
) -> Result<(Vec<WrittenFile>, Vec<FooterSummary>)> {
    let dataset = Dataset::named("contacts", None)?;
    console.step(&format!("generating {} contacts into {}", thousands(args.rows), directory.display()));
    let output = Output::Directory(directory.to_owned());
    let seeded =
        r#gen::generate(&dataset, layout, &output, profile, console, |job| Job { seed: args.seed, ..job });
    let (generated, _) = seeded?;
    let phase = profile.phase("footers");
    let footers =
        generated.iter().map(|file| footer::summarise(&file.path)).collect::<Result<Vec<_>, _>>()?;
    phase.add_bytes(footers.iter().map(|footer| footer.footer_bytes as u64).sum());
    phase.finish();
    Ok((generated, footers))
}

/// The second half of the job.
#[derive(Clone, Copy)]
struct LoadJob<'a> {
    paths: &'a [PathBuf],
    profile: &'a Profile,
    console: Console,
}

impl LoadJob<'_> {
    /// Loads into a private server.
    fn into_local_server(self, table: &TableName, args: &DemoArgs) -> Result<Loaded> {
        let (server, _) = start_server(self.profile, self.console)?;
        let (load, verification) = self.load_and_verify(&target::postgres(&server.url(), &args.table)?)?;
        let kept = if args.keep {
            let kept = server.keep()?;
            Some(Kept::new(kept.url, Some(kept.stop_command), table))
        } else {
            self.console.step("removing the server");
            server.stop()?;
            None
        };
        Ok(Loaded { load, verification, kept })
    }

    /// Loads into the user's server, then removes the table.
    fn into_own_server(
        self,
        url: &str,
        target: &Postgres,
        table: &TableName,
        args: &DemoArgs,
    ) -> Result<Loaded> {
        let (load, verification) = self.load_and_verify(target).inspect_err(|error| {
            // Nothing was created if the table existed before or the server was never reached.
            if let Some(made) = error.made_table {
                self.console.step("removing the loaded tables");
                if let Err(error) = remove(target, made) {
                    self.console.step(&format!("warning: {error}"));
                }
            }
        })?;
        let kept = if args.keep {
            Some(Kept::new(forms::without_password(url), None, table))
        } else {
            remove(target, true)?;
            None
        };
        Ok(Loaded { load, verification, kept })
    }

    fn load_and_verify(self, target: &Postgres) -> Result<(LoadReport, Verification)> {
        let Self { profile, console, .. } = self;
        let options = LoadOptions { degree: target::default_degree(), ..LoadOptions::default() };
        let source = ParquetFiles::open(self.paths)?;
        console.step(&format!("loading over {}", phases::counted(options.degree as u64, "connection")));
        let (load, _) = load_files(&source, target, &options, profile, console)?;
        console.step("verifying");
        let phase = profile.phase("verify");
        let verification = verify(&source, target, &options, &interrupt::control(&phase));
        let verification = verification.map_err(|error| Error::from(error).after_loading())?;
        phase.add_rows(verification.target.rows);
        phase.finish();
        verification::check(&verification, "of the demo").map_err(Error::after_loading)?;
        Ok((load, verification))
    }
}

/// Starts a private server. Also returns its version.
pub(crate) fn start_server(profile: &Profile, console: Console) -> Result<(LocalPg, String)> {
    let phase = profile.phase("start server");
    let spinner = console.spinner();
    let mut show = |progress: DownloadProgress| {
        let text = match progress {
            DownloadProgress::Resolving => {
                "no PostgreSQL is installed; looking for one to download".to_owned()
            }
            DownloadProgress::Downloading { version, .. } => format!("downloading PostgreSQL {version}"),
            DownloadProgress::Extracting { version, bytes, .. } => {
                format!("checking and unpacking PostgreSQL {version} ({})", phases::bytes(bytes))
            }
            _ => return,
        };
        console.detail(|| text.clone());
        spinner.set_message(text);
    };
    let binaries = Binaries::find_or_download(&mut show);
    spinner.finish_and_clear();
    let binaries = binaries?;
    console.step(&format!(
        "starting PostgreSQL {} from {}",
        binaries.version(),
        binaries.bin_dir().display()
    ));
    let version = binaries.version().to_string();
    // Large enough that no checkpoint interrupts the load.
    let server = LocalPg::builder().binaries(binaries).setting("max_wal_size", "4GB").start()?;
    console.detail(|| format!("data in {}, removed at the end", server.data_dir().display()));
    phase.finish();
    Ok((server, version))
}

/// Removes what a load left on the user's server, and the table too if the load created it.
pub(crate) fn remove(target: &Postgres, table: bool) -> Result<()> {
    interrupt::despite(|control| Ok(forget(target, table, control)?)).map(drop)
}

fn text(result: &DemoResult, args: &DemoArgs) -> String {
    let Loaded { load, verification, kept } = &result.loaded;
    let mut out = verification::table_of(verification, 0) + "\n" + &phases::table_of(&result.phases);
    let [rows, units] = [(load.rows, "row"), (load.units, "unit")].map(|(n, what)| phases::counted(n, what));
    out += &format!("\n{rows} in table {} over {units}\n", args.table);
    if let Some(directory) = &args.dir {
        out += &format!("kept the files in {}\n", directory.display());
    }
    if let Some(kept) = kept {
        out += &format!("kept the table; look at it with\n  {}\n", kept.psql);
        if let Some(stop) = &kept.stop {
            out += &format!("stop the server and remove its data with\n  {stop}\n");
        }
    }
    out
}
