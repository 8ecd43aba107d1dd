//! The tables of a server by their names: `pg.orders`, and `pg.public.orders` with their schema.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, SchemaProvider};
use datafusion::datasource::TableProvider;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use sawmill_loader::{Mode, TableName};
use sawmill_postgres::Postgres;

use crate::error::{external, refused};
use crate::postgres::table::PostgresTable;

/// The name of the schema and of the catalogue.
pub(crate) const NAME: &str = "pg";

/// Adds the tables of the server at `address`, such as `postgres://me@host/database`, to a session: `pg.orders` is the
/// table that the server's search path finds, `pg.public.orders` that of the schema. No connection is opened yet.
/// Rows are inserted by [`sql`](crate::sql) and by `DataFrame::write_table`; tables cannot be read.
///
/// # Errors
/// The address cannot be used; the session has no default catalogue.
pub fn register_postgres(context: &SessionContext, address: &str) -> Result<()> {
    // Any table: only the address of the server is kept of it.
    let server =
        Postgres::new(address.parse().map_err(external)?, TableName::new(None, NAME).map_err(external)?);
    let names = context.catalog_names();
    let options = context.copied_config().options().catalog.default_catalog.clone();
    let catalog = names.iter().find(|name| **name == options).and_then(|name| context.catalog(name));
    let Some(catalog) = catalog else {
        return Err(refused("the session has no default catalogue", &options, "register one"));
    };
    catalog.register_schema(NAME, Arc::new(PostgresSchema { server: server.clone(), schema: None }))?;
    context.register_catalog(NAME, Arc::new(PostgresCatalog { server }));
    Ok(())
}

/// The schemas of a server.
#[derive(Debug)]
struct PostgresCatalog {
    server: Postgres,
}

impl CatalogProvider for PostgresCatalog {
    fn schema_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let (server, schema) = (self.server.clone(), Some(name.to_owned()));
        Some(Arc::new(PostgresSchema { server, schema }))
    }
}

/// The tables of a schema, or those that the search path finds.
#[derive(Debug)]
pub(crate) struct PostgresSchema {
    server: Postgres,
    schema: Option<String>,
}

impl PostgresSchema {
    /// A table to insert into, or to create.
    pub(crate) fn target(&self, name: &str, mode: Mode) -> Result<Postgres> {
        let name = TableName::new(self.schema.as_deref(), name).map_err(external)?;
        Ok(self.server.clone().of_table(name).mode(mode))
    }
}

#[async_trait]
impl SchemaProvider for PostgresSchema {
    /// None: other tables are not listed.
    fn table_names(&self) -> Vec<String> {
        Vec::new()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let table = PostgresTable::existing(self.target(name, Mode::Append)?).await?;
        Ok(Some(Arc::new(table)))
    }

    fn table_exist(&self, _: &str) -> bool {
        true
    }
}
