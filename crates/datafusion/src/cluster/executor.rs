//! `sawmill-cluster executor`.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballista_core::config::TaskSchedulingPolicy;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_executor::health::ExecutorHealth;
use datafusion::error::Result;
use tokio::net::TcpStream;

use crate::cluster::arguments::ExecutorArgs;
use crate::cluster::session::host_and_port;
use crate::codec::{SawmillLogicalCodec, SawmillPhysicalCodec};
use crate::error::{external, refused};

/// Seconds in which a scheduler that starts at the same time has to answer.
const CONNECT_SECONDS: u16 = 30;

/// How often the process looks whether it is registered.
const LOOK: Duration = Duration::from_millis(100);

/// Runs tasks until the process is asked to end. A line of standard output says when it begins to take them.
pub(crate) async fn run(args: ExecutorArgs) -> Result<()> {
    let (scheduler_host, scheduler_port) = host_and_port(&args.scheduler)?;
    let port = free_port(SocketAddr::new(args.bind, args.port))?;
    if let Some(dir) = &args.work_dir {
        check_folder(dir)?;
    }
    wait_for_scheduler(&args.scheduler, &scheduler_host, scheduler_port).await?;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let work_dir = match args.work_dir {
        Some(dir) => Some(dir.into_os_string().into_string().map_err(|dir| {
            refused("the directory cannot be used", &dir.to_string_lossy(), "give --work-dir a Unicode path")
        })?),
        None => None,
    };
    let host = args.host.unwrap_or_else(|| args.bind.to_string());
    let (vcores, health) = (args.tasks.map_or(cores, |tasks| tasks as usize), ExecutorHealth::new());
    let begun = format!(
        "executor {host}:{port} takes tasks of the scheduler at {}, {vcores} at a time",
        args.scheduler
    );
    let config = ExecutorProcessConfig {
        bind_host: args.bind.to_string(),
        external_host: Some(host),
        port,
        scheduler_host,
        scheduler_port,
        scheduler_connect_timeout_seconds: CONNECT_SECONDS,
        vcores,
        health: health.clone(),
        task_scheduling_policy: TaskSchedulingPolicy::PullStaged,
        work_dir,
        memory_pool_size: args.memory,
        override_logical_codec: Some(Arc::new(SawmillLogicalCodec::default())),
        override_physical_codec: Some(Arc::new(SawmillPhysicalCodec::default())),
        ..ExecutorProcessConfig::default()
    };
    tokio::select! {
        ended = start_executor_process(Arc::new(config)) => ended.map_err(external),
        never = watch(health, &begun, &args.scheduler) => match never {},
    }
}

/// The port, or a free one for 0. Ballista tells others the port that it was given, so that it cannot choose one itself,
/// and ends without an error if it is taken.
fn free_port(wanted: SocketAddr) -> Result<u16> {
    let listened = TcpListener::bind(wanted).and_then(|listener| listener.local_addr());
    listened.map(|address| address.port()).map_err(|error| {
        let what = format!("the executor cannot listen: {error}");
        let advice = "give --bind an address of this machine, and a free --port (0 takes one)";
        refused(what, &wanted.to_string(), advice)
    })
}

/// Checks that rows can be kept in a folder, by writing a file.
fn check_folder(folder: &Path) -> Result<()> {
    let written = std::fs::create_dir_all(folder).and_then(|()| {
        let mut file = tempfile::tempfile_in(folder)?;
        file.write_all(b"rows")
    });
    written.map_err(|error| {
        let what = format!("rows between stages cannot be kept: {error}");
        refused(what, &folder.to_string_lossy(), "give --work-dir a folder that can be written to")
    })
}

/// Waits for a scheduler that may be starting.
async fn wait_for_scheduler(url: &str, host: &str, port: u16) -> Result<()> {
    let (began, most) = (Instant::now(), Duration::from_secs(CONNECT_SECONDS.into()));
    let mut is_first = true;
    loop {
        let connecting = TcpStream::connect((host, port));
        let left = most.saturating_sub(began.elapsed()).max(LOOK);
        let error = match tokio::time::timeout(left, connecting).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        if began.elapsed() >= most {
            let what = format!("the scheduler cannot be reached: {error}");
            let advice = "start it with sawmill-cluster scheduler, and check the address";
            return Err(refused(what, url, advice));
        }
        if std::mem::take(&mut is_first) {
            eprintln!("waiting for the scheduler at {url}, {CONNECT_SECONDS} s at most: {error}");
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Says when the scheduler has the executor, and when it is lost and comes back.
async fn watch(health: ExecutorHealth, begun: &str, scheduler: &str) -> std::convert::Infallible {
    let (mut is_known, mut was_known) = (false, false);
    loop {
        let now = health.is_ready();
        match (is_known, now) {
            (false, true) if was_known => eprintln!("the scheduler at {scheduler} answers again"),
            (false, true) => println!("{begun}"),
            (true, false) => eprintln!("the scheduler at {scheduler} does not answer: waiting for it"),
            _ => {}
        }
        (is_known, was_known) = (now, was_known || now);
        tokio::time::sleep(LOOK).await;
    }
}
