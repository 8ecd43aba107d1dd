//! `sawmill-cluster sql`.

use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use sawmill_cratedb::CrateServer;

use crate::cluster::arguments::SqlArgs;
use crate::cluster::output;
use crate::cluster::session::statement_session;
use crate::error::refused;
use crate::sinks::sink::{CRATE_DB, Database, POSTGRES};
use crate::{register_crate_db, register_postgres};

/// Runs the statement and prints its rows.
pub(crate) async fn run(args: SqlArgs) -> Result<()> {
    let partitions = args.partitions.map(|partitions| partitions as usize);
    let context = statement_session(&args.cluster, partitions).await?;
    for address in &args.to {
        register_server(&context, address)?;
    }
    let rows = crate::sql(&context, &args.sql).await?.execute_stream().await?;
    output::print(rows, args.printed.format()).await
}

/// Adds the tables of a server by the scheme of its address.
pub(crate) fn register_server(context: &SessionContext, address: &str) -> Result<&'static Database> {
    type Register = fn(&SessionContext, &str) -> Result<()>;
    let (database, register): (&'static Database, Register) = match CrateServer::understands(address) {
        true => (&CRATE_DB, register_crate_db),
        false => (&POSTGRES, register_postgres),
    };
    if context.catalog(database.catalogue).is_some() {
        let what = format!("there are two servers for the tables {}.*", database.catalogue);
        return Err(refused(what, "--to", "give one address of PostgreSQL and one of CrateDB at most"));
    }
    register(context, address)?;
    Ok(database)
}
