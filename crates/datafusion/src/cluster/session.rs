//! Sessions with our table functions, in this process and on a cluster.

use std::sync::Arc;

use ballista::prelude::{SessionConfigExt, SessionContextExt};
use ballista_core::config::BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK;
use ballista_core::planner::BallistaQueryPlanner;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::cluster::access::{Access, ClusterArgs};
use crate::cluster::planner::SinkPlanner;
use crate::codec::{SawmillLogicalCodec, SawmillPhysicalCodec};
use crate::error::refused;
use crate::register;

/// A session whose queries run in this process, in `partitions` partitions (by default one a core).
///
/// # Errors
/// The session takes no more planners.
pub fn local_session(partitions: Option<usize>) -> Result<SessionContext> {
    let mut config = SessionConfig::new().with_information_schema(true);
    if let Some(partitions) = partitions {
        config = config.with_target_partitions(partitions);
    }
    let context = SessionContext::new_with_config(config);
    register(&context)?;
    Ok(context)
}

/// A session whose queries run on the executors of the scheduler at `url`, such as `df://scheduler:50050`.
///
/// # Errors
/// The URL is not valid, or no scheduler answers there.
pub async fn remote_session(url: &str, partitions: Option<usize>) -> Result<SessionContext> {
    connected(url, &Access::default(), partitions, None).await
}

/// A session for a statement: in this process without a scheduler, else on its executors.
///
/// # Errors
/// As [`remote_session`]; the options of the connection cannot be used.
pub(crate) async fn statement_session(
    cluster: &ClusterArgs,
    partitions: Option<usize>,
) -> Result<SessionContext> {
    match cluster.read()? {
        Some((url, access)) => connected(url, &access, partitions, None).await,
        None => local_session(partitions),
    }
}

/// As [`statement_session`], for a job, in which each unit of work is a task. By default Ballista gives an executor
/// one task with as many units as it has free cores, and then another, so that more units run at a time than
/// `--tasks` says.
///
/// # Errors
/// As [`statement_session`].
pub(crate) async fn job_session(cluster: &ClusterArgs) -> Result<SessionContext> {
    match cluster.read()? {
        Some((url, access)) => connected(url, &access, None, Some(1)).await,
        None => local_session(None),
    }
}

async fn connected(
    url: &str,
    access: &Access,
    partitions: Option<usize>,
    partitions_of_task: Option<usize>,
) -> Result<SessionContext> {
    let (host, port) = host_and_port(url)?;
    access.probe(url).await.map_err(|failure| failure.into_error(url))?;
    let mut config = access
        .session(SessionConfig::new_with_ballista())
        .with_ballista_logical_extension_codec(Arc::new(SawmillLogicalCodec::default()))
        .with_ballista_physical_extension_codec(Arc::new(SawmillPhysicalCodec::default()));
    if let Some(partitions) = partitions {
        config = config.with_target_partitions(partitions);
    }
    if let Some(most) = partitions_of_task {
        config = config.set_usize(BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK, most);
    }
    let cluster = BallistaQueryPlanner::with_extension(
        format!("{}://{host}:{port}", access.scheme()),
        config.ballista_config(),
        config.ballista_logical_extension_codec(),
    );
    let config = config.with_ballista_query_planner(Arc::new(SinkPlanner { cluster }));
    let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    let context = SessionContext::remote_with_state(url, state).await?;
    register(&context)?;
    Ok(context)
}

/// The host and the port of a scheduler's URL, such as `df://host:port`.
pub(crate) fn host_and_port(url: &str) -> Result<(String, u16)> {
    let address = url.split_once("://").map_or(url, |(_, address)| address).trim_end_matches('/');
    let parts = address.rsplit_once(':').and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)));
    parts.filter(|(host, _)| !host.is_empty()).ok_or_else(|| {
        refused("this is not the URL of a scheduler", url, "write, for example, df://scheduler:50050")
    })
}
