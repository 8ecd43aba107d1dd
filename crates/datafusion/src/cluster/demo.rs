//! `sawmill-cluster demo`: a cluster of processes of this machine, which end with it.

use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use datafusion::error::Result;
use sawmill_localpg::LocalPg;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::cluster::access::ClusterArgs;
use crate::cluster::arguments::{DatasetArgs, DemoArgs, Format};
use crate::cluster::output;
use crate::cluster::session::job_session;
use crate::cluster::submit;
use crate::error::{external, refused};

/// Executors of the demo.
const EXECUTORS: usize = 2;

/// Parts of the load: more than tasks run at a time.
const PARTS: &str = "4";

/// Generates files on a cluster, reads their footers, and loads them into a new database. Removes everything at the
/// end.
pub(crate) async fn run(args: DemoArgs) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("sawmill-cluster-").tempdir()?;
    let server = tokio::task::spawn_blocking(LocalPg::start).await.map_err(external)?.map_err(external)?;
    let database = Database::new(&server.url())?;
    let (scheduler, url) = scheduler().await?;
    let mut processes = vec![scheduler];
    for number in 0..EXECUTORS {
        processes.push(executor(&url, &folder.path().join(format!("executor-{number}")), &database)?);
    }
    println!("a scheduler at {url}, {EXECUTORS} executors, and PostgreSQL at {}", database.address);
    let cluster = ClusterArgs { scheduler: Some(url.clone()), ..ClusterArgs::default() };
    let context = job_session(&cluster).await?;
    let out = folder.path().join("contacts");
    let dataset = DatasetArgs {
        spec: "contacts".to_owned(),
        rows: Some(args.rows),
        files: args.files,
        scale: None,
        out: out.display().to_string(),
        seed: None,
        compression: Vec::new(),
    };
    let started = Instant::now();
    let made = submit::files(&context, &dataset).await?;
    println!("\n{}, in {:.1} s\n", made.summary, started.elapsed().as_secs_f64());
    let sql = format!(
        "SELECT path, count(*) AS chunks, sum(num_values) AS \"values\", sum(null_count) AS nulls, \
         sum(compressed_bytes) AS bytes FROM footer('{}') GROUP BY path ORDER BY path",
        out.display()
    );
    println!("{sql}");
    let started = Instant::now();
    output::print(context.sql(&sql).await?.execute_stream().await?, Format::Table).await?;
    println!("the footers took {:.1} s\n", started.elapsed().as_secs_f64());
    let started = Instant::now();
    load(&out, &url, &database).await?;
    println!("the load took {:.1} s", started.elapsed().as_secs_f64());
    for mut process in processes {
        process.kill().await?;
    }
    tokio::task::spawn_blocking(move || server.stop()).await.map_err(external)?.map_err(external)
}

/// The database that receives the rows. Plans and arguments hold the address, and only the environment the
/// password.
struct Database {
    address: String,
    password: String,
}

impl Database {
    /// The database at a URL that has a password.
    fn new(url: &str) -> Result<Self> {
        let parts = || {
            let (scheme, rest) = url.split_once("://")?;
            let (user, place) = rest.split_once('@')?;
            let (user, password) = user.split_once(':')?;
            let (address, password) = (format!("{scheme}://{user}@{place}"), password.to_owned());
            Some(Self { address, password })
        };
        parts().ok_or_else(|| refused("the database has no password", "demo", "start it again"))
    }
}

/// Loads the files on the executors, and compares the table with them.
async fn load(files: &Path, scheduler: &str, database: &Database) -> Result<()> {
    let (address, table) = (&database.address, "contacts");
    println!("submit load {} --to {address} --table {table} --parts {PARTS} --verify", files.display());
    let mut job = command()?;
    job.args(["submit", "load"]).arg(files).args(["--to", address, "--table", table, "--parts", PARTS]);
    job.args(["--verify", "--scheduler", scheduler]).env("PGPASSWORD", &database.password);
    match job.status().await?.success() {
        true => Ok(()),
        false => Err(refused("the load failed", "demo", "see its message above")),
    }
}

/// This command, as a process that ends with this one.
fn command() -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.kill_on_drop(true).stdin(Stdio::null());
    Ok(command)
}

/// Starts a scheduler on a free port, and returns it with its URL.
async fn scheduler() -> Result<(Child, String)> {
    let mut process = command()?.args(["scheduler", "--port", "0"]).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    if let Some(out) = process.stdout.take() {
        BufReader::new(out).read_line(&mut line).await?;
    }
    match line.trim().strip_prefix("scheduler ") {
        Some(url) => Ok((process, url.to_owned())),
        None => Err(refused("the scheduler did not start", "demo", "see its message above")),
    }
}

/// Starts an executor of one task at a time.
fn executor(scheduler: &str, work: &Path, database: &Database) -> Result<Child> {
    std::fs::create_dir(work)?;
    let args = ["executor", "--scheduler", scheduler, "--tasks", "1", "--work-dir"];
    let mut process = command()?;
    process.args(args).arg(work).env("PGPASSWORD", &database.password).stdout(Stdio::null());
    Ok(process.spawn()?)
}
