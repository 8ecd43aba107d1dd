//! Generated rows and Parquet footers as tables of DataFusion.
//!
//! ```
//! # async fn query() -> datafusion::error::Result<()> {
//! use datafusion::prelude::SessionContext;
//!
//! let context = SessionContext::new();
//! sawmill_datafusion::register(&context)?;
//! let rows = context.sql("SELECT count(*), max(name) FROM gen('contacts', rows => 1e5, seed => 7)").await?;
//! rows.show().await?;
//! let sizes = "SELECT path, sum(compressed_bytes) FROM footer('data/**') GROUP BY path";
//! # if false {
//! context.sql(sizes).await?.show().await?;
//! # }
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(query())?;
//! # Ok::<(), datafusion::error::DataFusionError>(())
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | `functions` | table functions of SQL, with named arguments |
//! | `footers` | footers of Parquet files as a table |
//! | `generated` | rows of the generator as a table, and files of them as a job |
//! | `parquet_files` | Parquet files as a table, opened through our footers |
//! | `sinks` | tables of PostgreSQL and CrateDB that statements fill (features `postgres`, `cratedb`), and loads as jobs (feature `cluster`) |
//! | `objects` | objects of stores, and their footers |
//! | `units` | work in units that an engine can place on machines |
//! | `operator` | the frame that our operators share |
//! | `codec` | plans on their way to the executors of Ballista (feature `cluster`) |
//! | [`cluster`] | the command `sawmill-cluster` (feature `cluster`) |

#[cfg(feature = "cluster")]
pub mod cluster;
#[cfg(feature = "cluster")]
mod codec;
mod error;
mod footers;
mod found_files;
mod functions;
mod generated;
mod objects;
mod operator;
mod parquet_files;
#[cfg(any(feature = "postgres", feature = "cratedb"))]
mod sinks;
mod units;

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::prelude::SessionContext;

#[cfg(feature = "cluster")]
pub use codec::{SawmillLogicalCodec, SawmillPhysicalCodec};
pub use footers::columns::FooterLevel;
pub use footers::table::FooterTable;
pub use generated::table::GeneratedTable;
pub use parquet_files::table::ParquetTable;
#[cfg(feature = "cratedb")]
pub use sinks::crate_db::register_crate_db;
#[cfg(feature = "postgres")]
pub use sinks::postgres::register_postgres;
#[cfg(any(feature = "postgres", feature = "cratedb"))]
pub use sinks::statement::sql;

/// Adds the table functions to a session: `gen(spec, rows => .., seed => .., scale => .., number => .., partitions => ..)`,
/// `footer(files, level => 'chunk' | 'row_group' | 'file')` and `parquet(files)`.
///
/// # Errors
/// The session takes no more planners.
pub fn register(context: &SessionContext) -> Result<()> {
    context.register_relation_planner(Arc::new(functions::planner::FunctionPlanner))
}
