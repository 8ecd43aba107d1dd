//! An answer that does not come: does the cluster still work on the statement? `sys.jobs` has the statements that any node
//! runs (<https://cratedb.com/docs/crate/reference/en/latest/admin/system-information.html#jobs-operations-and-logs>).

use std::sync::Arc;

use sawmill_source::Control;
use serde::Deserialize;

use crate::connect::client::{Client, Cluster};
use crate::connect::sql::Failed;

/// The question, which is one of the jobs itself: it has just started by the clock of the server.
const JOBS: &str = "SELECT stmt, started FROM sys.jobs";

/// Decides whether to go on waiting for an answer after the cluster's silence; otherwise returns the reason. Other
/// connections may run the same statement, so only a job that has run for at least half of the silence counts as
/// this one.
pub(crate) fn goes_on(
    cluster: &Arc<Cluster>,
    is_meant: &dyn Fn(&str) -> bool,
    control: &Control<'_>,
) -> Result<(), String> {
    let silence = cluster.silence();
    let waits = |why: &str| {
        control.notice(&format!("{}: no answer for {} s; {why}", cluster.server, silence.as_secs_f64()));
        Ok(())
    };
    let answer = match Client::asking(cluster).on(control).once(JOBS, &[]) {
        Ok(answer) => answer,
        Err(Failed::Passing(error)) => {
            return waits(&format!("whether the server works on it cannot be asked now: {}", error.what()));
        }
        Err(Failed::Refused(error)) => {
            return Err(format!("whether the server works on it cannot be asked: {}", error.what()));
        }
        Err(Failed::Lost(_)) => return Err("it does not answer over another connection either".to_owned()),
    };
    let jobs = answer.all::<(String, i64)>().map_err(|error| error.what())?;
    let Some((_, now)) = jobs.iter().filter(|(job, _)| job == JOBS).max_by_key(|(_, started)| *started)
    else {
        return Err("it does not list its jobs (stats.enabled)".to_owned());
    };
    let before = now - silence.as_millis() as i64 / 2;
    match jobs.iter().any(|(job, started)| *started <= before && is_meant(job)) {
        true => waits("the server works on it (sys.jobs)"),
        false => Err("it is not among the jobs of the server".to_owned()),
    }
}

/// The statement of a request's body; empty if that is not one for `/_sql`.
pub(crate) fn statement_of(pieces: &[&[u8]]) -> String {
    #[derive(Deserialize)]
    struct Body {
        stmt: String,
    }
    serde_json::from_slice(&pieces.concat()).map_or_else(|_| String::new(), |Body { stmt }| stmt)
}
