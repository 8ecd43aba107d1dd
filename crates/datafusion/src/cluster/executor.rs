//! `sawmill-cluster executor`.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_flight::flight_service_server::FlightServiceServer;
use ballista::prelude::SessionConfigExt;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::BallistaError;
use ballista_core::utils::create_grpc_server;
use ballista_executor::ArrowFlightServerProvider;
use ballista_executor::execution_engine::DefaultExecutionEngine;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_executor::flight_service::BallistaFlightService;
use ballista_executor::health::ExecutorHealth;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionConfig;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;

use crate::cluster::access::{Access, Failure};
use crate::cluster::arguments::ExecutorArgs;
use crate::cluster::engine::CheckingEngine;
use crate::cluster::session::host_and_port;
use crate::codec::{SawmillLogicalCodec, SawmillPhysicalCodec};
use crate::error::{external, refused};

/// Seconds in which a scheduler that starts at the same time has to answer.
const CONNECT_SECONDS: u16 = 30;

/// How often the process looks whether it is registered.
const LOOK: Duration = Duration::from_millis(100);

/// How often it asks a scheduler that it has lost whether that refuses it.
const ASK: Duration = Duration::from_secs(5);

/// Runs tasks until a signal ends the process. Prints a line to standard output once it accepts tasks.
pub(crate) async fn run(args: ExecutorArgs) -> Result<()> {
    let (scheduler_host, scheduler_port) = host_and_port(&args.scheduler)?;
    let host = args.host.unwrap_or_else(|| args.bind.to_string());
    let (access, wanted) = (Access::read(&args.access)?, SocketAddr::new(args.bind, args.port));
    access.check_listener("executor", wanted, &host)?;
    let listener = listen(wanted).await?;
    let port = listener.local_addr()?.port();
    if let Some(dir) = &args.work_dir {
        check_folder(dir)?;
    }
    wait_for_scheduler(&args.scheduler, &access).await?;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let work_dir = match args.work_dir {
        Some(dir) => Some(dir.into_os_string().into_string().map_err(|dir| {
            refused("the directory cannot be used", &dir.to_string_lossy(), "give --work-dir a Unicode path")
        })?),
        None => None,
    };
    let (vcores, health) = (args.tasks.map_or(cores, |tasks| tasks as usize), ExecutorHealth::new());
    let begun = format!(
        "executor {host}:{port} takes tasks of the scheduler at {}, {vcores} at a time",
        args.scheduler
    );
    let (protected, defaults) = (access.clone(), ExecutorProcessConfig::default());
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
        override_config_producer: Some(Arc::new(move || {
            protected.session(SessionConfig::new_with_ballista())
        })),
        override_execution_engine: Some(Arc::new(CheckingEngine {
            ballista: DefaultExecutionEngine::new(),
            max_page: args.max_page,
        })),
        override_create_grpc_client_endpoint: Some(access.endpoint()),
        override_arrow_flight_service: Some(rows_service(listener, access.clone(), &defaults)),
        ..defaults
    };
    tokio::select! {
        ended = start_executor_process(Arc::new(config)) => ended.map_err(external),
        refused = watch(health, &begun, &args.scheduler, &access) => Err(refused),
    }
}

/// Binds the port, or a free one for 0. Ballista reports the given port to others, so it cannot choose one itself.
/// If the port is in use, Ballista would end without an error.
async fn listen(wanted: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(wanted).await.map_err(|error| {
        let what = format!("the executor cannot listen: {error}");
        let advice = "give --bind an address of this machine, and a free --port (0 takes one)";
        refused(what, &wanted.to_string(), advice)
    })
}

/// Serves rows between stages to those that may call. Ballista's own server knows neither TLS nor tokens.
fn rows_service(
    listener: TcpListener,
    access: Access,
    limits: &ExecutorProcessConfig,
) -> Arc<ArrowFlightServerProvider> {
    let listener = Mutex::new(Some(listener));
    let decoded = limits.grpc_max_decoding_message_size as usize;
    let encoded = limits.grpc_max_encoding_message_size as usize;
    Arc::new(move |work_dir, _, mut shutdown, config| {
        let listener = listener.lock().ok().and_then(|mut listener| listener.take());
        let access = access.clone();
        tokio::spawn(async move {
            let listener =
                listener.ok_or_else(|| BallistaError::General("the service runs already".to_owned()))?;
            let service = FlightServiceServer::new(BallistaFlightService::new(work_dir))
                .max_decoding_message_size(decoded)
                .max_encoding_message_size(encoded);
            let server =
                access.server(create_grpc_server(&config))?.layer(access.guard()).add_service(service);
            let keepalive = Some(Duration::from_secs(config.tcp_keepalive_seconds));
            let incoming = TcpIncoming::from(listener).with_nodelay(Some(true)).with_keepalive(keepalive);
            Ok(server.serve_with_incoming_shutdown(incoming, shutdown.recv()).await?)
        })
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
async fn wait_for_scheduler(url: &str, access: &Access) -> Result<()> {
    let (began, most) = (Instant::now(), Duration::from_secs(CONNECT_SECONDS.into()));
    let mut is_first = true;
    loop {
        let what = match access.probe(url).await {
            Ok(()) => return Ok(()),
            Err(Failure::Passing { what, .. }) if began.elapsed() < most => what,
            Err(failure) => return Err(failure.into_error(url)),
        };
        if std::mem::take(&mut is_first) {
            eprintln!("waiting for the scheduler at {url}, {CONNECT_SECONDS} s at most: {what}");
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Reports when the scheduler has accepted the executor, when it is lost, and when it comes back. Returns if it
/// then refuses this process, for example because it now has another token.
async fn watch(health: ExecutorHealth, begun: &str, scheduler: &str, access: &Access) -> DataFusionError {
    let (mut is_known, mut was_known, mut asked) = (false, false, Instant::now());
    loop {
        let now = health.is_ready();
        match (is_known, now) {
            (false, true) if was_known => eprintln!("the scheduler at {scheduler} answers again"),
            (false, true) => println!("{begun}"),
            (true, false) => eprintln!("the scheduler at {scheduler} does not answer: waiting for it"),
            _ => {}
        }
        (is_known, was_known) = (now, was_known || now);
        if !now && asked.elapsed() >= ASK {
            if let Err(Failure::Refused(error)) = access.probe(scheduler).await {
                return error;
            }
            asked = Instant::now();
        }
        tokio::time::sleep(LOOK).await;
    }
}
