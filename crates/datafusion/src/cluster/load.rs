//! `sawmill-cluster load`: the rows of a query over one source, for `sawmill load --query`.

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::error::Result;
use datafusion::execution::context::SQLOptions;
use sawmill_cratedb::{CrateServer, table_name};
use sawmill_profile::format_counted;

use crate::ParquetTable;
use crate::cluster::arguments::{LoadArgs, LoadMode};
use crate::cluster::output::say;
use crate::cluster::session::local_session;
use crate::cluster::sql::register_server;
use crate::error::{external, refused};

/// Loads the rows, all in one statement, and says how many.
pub(crate) async fn run(args: LoadArgs) -> Result<()> {
    let is_crate_db = CrateServer::understands(&args.to);
    if is_crate_db && args.mode == LoadMode::Append {
        let what = "CrateDB has no transactions: if the load fails, some rows stay in the table";
        let advice = "load into a new table, or write INSERT INTO crate.TABLE SELECT .. for sawmill-cluster sql, whose \
                      errors count those rows";
        return Err(refused(what, "--mode append", advice));
    }
    let name = if is_crate_db { table_name(&args.table) } else { args.table.parse() };
    let context = local_session(args.partitions.map(|partitions| partitions as usize))?;
    let database = register_server(&context, &args.to)?;
    let table = format!("{}.{}", database.catalogue, name.map_err(external)?.quoted());
    context.register_table("read", Arc::new(ParquetTable::new(&args.source)?))?;
    let only_queries =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    let rows = context.sql_with_options(&args.query, only_queries).await?;
    let statement = match args.mode {
        LoadMode::Create => format!("CREATE TABLE {table} AS {}", args.query),
        LoadMode::Append => {
            let names = rows
                .schema()
                .fields()
                .iter()
                .map(|field| format!("\"{}\"", field.name().replace('"', "\"\"")));
            format!("INSERT INTO {table} ({}) {}", names.collect::<Vec<_>>().join(", "), args.query)
        }
    };
    let stored = crate::sql(&context, &statement).await?.collect().await?;
    let stored: u64 =
        stored.iter().flat_map(|rows| rows.column(0).as_primitive::<UInt64Type>().values().iter()).sum();
    match (args.json, args.quiet) {
        (true, _) => say(&serde_json::json!({ "rows": stored, "table": args.table }).to_string()),
        (_, true) => Ok(()),
        _ => say(&format!("{} stored in table {}", format_counted(stored, "row"), args.table)),
    }
}
