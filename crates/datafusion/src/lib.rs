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
//! | room | what it does |
//! |---|---|
//! | `functions` | table functions of SQL, with named arguments |
//! | `footers` | footers of Parquet files as a table |
//! | `generated` | rows of the generator as a table, and files of them as a job |
//! | `parquet_files` | Parquet files as a table, opened through our footers |
//! | `postgres` | tables of PostgreSQL that statements fill (feature `postgres`), and loads as jobs (feature `cluster`) |
//! | `objects` | objects of stores, and their footers |
//! | `units` | work in units that an engine can place on machines |
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
mod parquet_files;
#[cfg(feature = "postgres")]
mod postgres;
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
#[cfg(feature = "postgres")]
pub use postgres::schema::register_postgres;
#[cfg(feature = "postgres")]
pub use postgres::statement::sql;

/// Adds the table functions to a session: `gen(spec, rows => .., seed => .., scale => .., number => .., partitions => ..)`,
/// `footer(files, level => 'chunk' | 'row_group' | 'file')` and `parquet(files)`.
///
/// # Errors
/// The session takes no more planners.
pub fn register(context: &SessionContext) -> Result<()> {
    context.register_relation_planner(Arc::new(functions::planner::FunctionPlanner))
}
