//! The plan that the arguments describe.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use sawmill_cratedb::CrateServer;
use sawmill_drive::{Abort, Address, Arrivals, Limit, MAX_CONNECTIONS, Pace, Plan, Shape};
use sawmill_generator::{Dataset, NamedRows};
use sawmill_localpg::LocalPg;
use sawmill_pgwire::Server;

use crate::drive::args::DriveArgs;
use crate::error::{Error, Result};

/// The dataset of `DATASET`, `tpch/TABLE?scale=10` or `SPEC/TABLE`.
fn dataset(text: &str) -> Result<Dataset> {
    let named = NamedRows::parse(text)?;
    for (parameter, option) in [(named.rows, "--rows"), (named.seed, "--seed")] {
        if let Some(number) = parameter {
            let advice = format!("give {option} {number}");
            let what = "rows or seed in the name of the dataset";
            return Err(Error::usage(what, format!("gen:{text}"), advice));
        }
    }
    Ok(Dataset::named(&named.name, named.scale)?)
}

/// The plan, and what the arguments change in it.
pub(super) fn plan(args: &DriveArgs) -> Result<Plan> {
    let mut plan = match args.plan().strip_prefix("gen:") {
        Some(name) => {
            let mut plan = Plan::of_dataset(dataset(name)?);
            let Some(table) = plan.tables.first_mut() else { return Ok(plan) };
            if let Some(name) = &args.table {
                table.name.clone_from(name);
            }
            table.rows = args.rows.unwrap_or(0);
            plan
        }
        None => {
            let given = [("--table", args.table.is_some()), ("--rows", args.rows.is_some())];
            if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
                let advice = "write it in the plan";
                return Err(Error::usage("a plan names its tables and their rows", *option, advice));
            }
            Plan::from_file(Path::new(args.plan()))?
        }
    };
    pace(&mut plan, args)?;
    plan.length = args.length.or(plan.length);
    plan.warm_up = args.warm_up.unwrap_or(plan.warm_up);
    plan.seed = args.seed.unwrap_or(plan.seed);
    for text in &args.limit {
        let limit: Limit = text.parse().map_err(|what: String| Error::usage(what, "--limit", ""))?;
        plan.check_limit(&limit).map_err(|what| Error::usage(what, format!("--limit {text:?}"), ""))?;
        plan.limits.push(limit);
    }
    for text in &args.abort_when {
        let abort: Abort = text.parse().map_err(|what: String| Error::usage(what, "--abort-when", ""))?;
        plan.check_limit(abort.condition())
            .map_err(|what| Error::usage(what, format!("--abort-when {text:?}"), ""))?;
        plan.abort_when.push(abort);
    }
    if let Some(text) = &args.chaos {
        plan.chaos = Some(text.parse().map_err(|what: String| Error::usage(what, "--chaos", ""))?);
    }
    plan.proof &= !args.no_proof;
    plan.overwrite |= args.overwrite;
    plan.drop_after |= args.drop;
    if let Some(part) = args.part {
        plan.part = (part.number().into(), part.parts().into());
        if plan.overwrite {
            let advice = "drop the tables before, once";
            return Err(Error::usage("parts would drop each other's tables", "--overwrite", advice));
        }
        if plan.drop_after && part.parts() > 1 {
            let advice = "drop the tables after the last part";
            let place = "--drop, or `drop` in the plan";
            return Err(Error::usage("a part would drop the tables of the others", place, advice));
        }
    }
    let starts = args.start_at.map(Duration::try_from_secs_f64).transpose();
    let starts =
        starts.map_err(|error| Error::usage(error.to_string(), "--start-at", "give seconds since 1970"))?;
    plan.start_at = starts.map(|since| UNIX_EPOCH + since);
    Ok(plan)
}

fn pace(plan: &mut Plan, args: &DriveArgs) -> Result<()> {
    let number = |given: usize, option: &str| match given {
        1.. if given as u64 <= MAX_CONNECTIONS => Ok(given),
        _ => Err(Error::usage(
            format!("{given} is out of bounds"),
            option,
            format!("give 1 to {MAX_CONNECTIONS}"),
        )),
    };
    if let Some(clients) = args.clients {
        let think = args.think.unwrap_or_default();
        plan.pace = Pace::Closed { clients: number(clients, "--clients")?, think };
        return Ok(());
    }
    let given = args.rate.is_some() || args.arrivals.is_some();
    if let (Pace::Closed { .. }, true) = (&plan.pace, given) {
        plan.pace = Pace::Open { shape: Shape::Constant(100.0), arrivals: Arrivals::Poisson };
    }
    if let (Pace::Closed { .. }, Some(_)) = (&plan.pace, args.connections) {
        let what = "the plan's loop is closed: each client has a connection";
        return Err(Error::usage(what, "--connections", "leave it out"));
    }
    if let Pace::Open { shape, arrivals } = &mut plan.pace {
        if let Some(text) = &args.arrivals {
            *arrivals = text.parse().map_err(|what: String| Error::usage(what, "--arrivals", ""))?;
        }
        if let Some(text) = &args.rate {
            if let Arrivals::Trace(_) = arrivals {
                let advice = "the trace has the times: leave it out";
                return Err(Error::usage("a rate beside a trace", "--rate", advice));
            }
            *shape = text.parse().map_err(|what: String| Error::usage(what, "--rate", ""))?;
        }
    }
    if let Some(connections) = args.connections {
        plan.connections = number(connections, "--connections")?;
    }
    Ok(())
}

/// Where operations go, and the server that was started for it.
pub(super) fn address(args: &DriveArgs) -> Result<(Address, Option<LocalPg>)> {
    if args.to() != "local" && !args.set.is_empty() {
        let advice = "use it with --to local";
        return Err(Error::usage("settings of a server that is not started here", "--set", advice));
    }
    match args.to() {
        "null" | "null:" => Ok((Address::Null, None)),
        "local" => {
            let mut builder = LocalPg::builder().setting("fsync", "on").setting("max_connections", "1000");
            for setting in &args.set {
                let Some((name, value)) = setting.split_once('=') else {
                    return Err(Error::usage(
                        format!("{setting:?} has no value"),
                        "--set",
                        "give NAME=VALUE",
                    ));
                };
                builder = builder.setting(name, value);
            }
            let server = builder.start()?;
            let address = Address::Postgres(Box::new(server.socket_url().parse::<Server>()?));
            Ok((address, Some(server)))
        }
        url if CrateServer::understands(url) => Ok((Address::CrateDb(Box::new(url.parse()?)), None)),
        url => Ok((Address::Postgres(Box::new(url.parse::<Server>()?)), None)),
    }
}
