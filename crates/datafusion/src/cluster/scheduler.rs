//! `sawmill-cluster scheduler`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion::error::Result;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::cluster::arguments::SchedulerArgs;
use crate::codec::{SawmillLogicalCodec, SawmillPhysicalCodec};
use crate::error::{external, refused};

/// How often the process looks whether a query waits for an executor, and how many times in a row it does before that is
/// said.
const LOOK: Duration = Duration::from_secs(1);
const LOOKS: u32 = 3;

/// Schedules until the process is asked to end. The first line of standard output has its URL.
pub(crate) async fn run(args: SchedulerArgs) -> Result<()> {
    let wanted = SocketAddr::new(args.bind, args.port);
    let listener = TcpListener::bind(wanted).await.map_err(|error| {
        let what = format!("the scheduler cannot listen: {error}");
        refused(what, &wanted.to_string(), "give another --port, or 0 for a free one")
    })?;
    let port = listener.local_addr()?.port();
    let host = args.host.clone().unwrap_or_else(|| args.bind.to_string());
    let config = Arc::new(SchedulerConfig {
        external_host: host.clone(),
        bind_host: args.bind.to_string(),
        bind_port: port,
        // Executors ask for tasks: nothing but their port for rows has to be reachable.
        scheduling_policy: TaskSchedulingPolicy::PullStaged,
        executor_timeout_seconds: args.executor_timeout,
        expire_dead_executor_interval_seconds: (args.executor_timeout / 4).max(1),
        override_logical_codec: Some(Arc::new(SawmillLogicalCodec::default())),
        override_physical_codec: Some(Arc::new(SawmillPhysicalCodec::default())),
        ..SchedulerConfig::default()
    });
    config.validate().map_err(external)?;
    let cluster = BallistaCluster::new_from_config(&config).await.map_err(external)?;
    let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, config);
    let scheduler = scheduler.await.map_err(external)?;
    println!("scheduler df://{host}:{port}");
    let (url, jobs) = (format!("df://{host}:{port}"), scheduler.clone());
    let watching = async move {
        let mut lacking = 0;
        loop {
            tokio::time::sleep(LOOK).await;
            let waits = jobs.pending_job_number() + jobs.running_job_number() > 0;
            let executors = jobs.state.executor_manager.get_executors_state().await;
            let lacks = waits && executors.is_ok_and(|executors| executors.is_empty());
            lacking = if lacks { lacking + 1 } else { 0 };
            if lacking == LOOKS {
                eprintln!(
                    "no executor is registered, and a query is waiting: start one with sawmill-cluster executor --scheduler {url}"
                );
            }
        }
    };
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        () = watching => Ok(()),
        served = start_grpc_service_with_listener(listener, scheduler) => served.map_err(external),
        _ = terminated.recv() => Ok(()),
        interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
    }
}
