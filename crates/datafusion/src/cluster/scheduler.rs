//! `sawmill-cluster scheduler`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpcServer;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::create_scheduler;
use ballista_scheduler::scheduler_server::SchedulerServer;
use datafusion::error::Result;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::cluster::access::Access;
use crate::cluster::arguments::SchedulerArgs;
use crate::codec::{SawmillLogicalCodec, SawmillPhysicalCodec};
use crate::error::{external, refused};

/// How often the process checks whether a query waits for an executor, and after how many such checks in a row it
/// reports that.
const LOOK: Duration = Duration::from_secs(1);
const LOOKS: u32 = 3;

/// Schedules until a signal ends the process. Prints its URL as the first line of standard output.
pub(crate) async fn run(args: SchedulerArgs) -> Result<()> {
    let wanted = SocketAddr::new(args.bind, args.port);
    let host = args.host.clone().unwrap_or_else(|| args.bind.to_string());
    let access = Access::read(&args.access)?;
    access.check_listener("scheduler", wanted, &host)?;
    let listener = TcpListener::bind(wanted).await.map_err(|error| {
        let what = format!("the scheduler cannot listen: {error}");
        refused(what, &wanted.to_string(), "give another --port, or 0 for a free one")
    })?;
    let port = listener.local_addr()?.port();
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
        override_create_grpc_client_endpoint: Some(access.endpoint()),
        use_tls: access.has_tls(),
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
        served = serve(listener, scheduler, &access) => served,
        _ = terminated.recv() => Ok(()),
        interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
    }
}

/// Serves clients and executors that may call. Ballista's own server knows neither TLS nor tokens.
async fn serve(
    listener: TcpListener,
    scheduler: SchedulerServer<LogicalPlanNode, PhysicalPlanNode>,
    access: &Access,
) -> Result<()> {
    let config = Arc::clone(&scheduler.state.config);
    let service = SchedulerGrpcServer::new(scheduler)
        .max_decoding_message_size(config.grpc_server_max_decoding_message_size as usize)
        .max_encoding_message_size(config.grpc_server_max_encoding_message_size as usize);
    let server = access.server(Server::builder())?.layer(access.guard()).add_service(service);
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    server.serve_with_incoming(incoming).await.map_err(external)
}
