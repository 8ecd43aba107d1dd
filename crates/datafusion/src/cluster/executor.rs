//! `sawmill-cluster executor`.

use std::net::{IpAddr, TcpListener};
use std::sync::Arc;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use datafusion::error::Result;

use crate::cluster::arguments::ExecutorArgs;
use crate::cluster::session::host_and_port;
use crate::codec::{SawmillLogicalCodec, SawmillPhysicalCodec};
use crate::error::{external, refused};

/// Seconds in which a scheduler that starts at the same time has to answer.
const CONNECT_SECONDS: u16 = 30;

/// Runs tasks until the process is asked to end.
pub(crate) async fn run(args: ExecutorArgs) -> Result<()> {
    let (scheduler_host, scheduler_port) = host_and_port(&args.scheduler)?;
    let port = match args.port {
        0 => free_port(args.bind)?,
        port => port,
    };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let work_dir = match args.work_dir {
        Some(dir) => Some(dir.into_os_string().into_string().map_err(|dir| {
            refused("the directory cannot be used", &dir.to_string_lossy(), "give --work-dir a Unicode path")
        })?),
        None => None,
    };
    let config = ExecutorProcessConfig {
        bind_host: args.bind.to_string(),
        external_host: Some(args.host.unwrap_or_else(|| args.bind.to_string())),
        port,
        scheduler_host,
        scheduler_port,
        scheduler_connect_timeout_seconds: CONNECT_SECONDS,
        vcores: args.tasks.map_or(cores, |tasks| tasks as usize),
        task_scheduling_policy: TaskSchedulingPolicy::PullStaged,
        work_dir,
        memory_pool_size: args.memory,
        override_logical_codec: Some(Arc::new(SawmillLogicalCodec::default())),
        override_physical_codec: Some(Arc::new(SawmillPhysicalCodec::default())),
        ..ExecutorProcessConfig::default()
    };
    start_executor_process(Arc::new(config)).await.map_err(external)
}

/// A free port. Ballista tells others the port that it was given, so that it cannot choose one
/// itself.
fn free_port(address: IpAddr) -> Result<u16> {
    Ok(TcpListener::bind((address, 0))?.local_addr()?.port())
}
