//! The tables of a server by their names: `pg.orders`, and `pg.public.orders` with their schema.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, SchemaProvider};
use datafusion::datasource::TableProvider;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use sawmill_loader::Mode;

use crate::error::refused;
use crate::sinks::sink::{Database, Server, Sink};
use crate::sinks::table::SinkTable;

/// Adds the tables of a server to a session, as a schema of its default catalogue and as a catalogue.
pub(crate) fn register(context: &SessionContext, server: Arc<dyn Server>) -> Result<()> {
    let (names, own) = (context.catalog_names(), server.database().catalogue);
    let default = context.copied_config().options().catalog.default_catalog.clone();
    let catalog = names.iter().find(|name| **name == default).and_then(|name| context.catalog(name));
    let Some(catalog) = catalog else {
        return Err(refused("the session has no default catalogue", &default, "register one"));
    };
    catalog.register_schema(own, Arc::new(SinkSchema { server: Arc::clone(&server), schema: None }))?;
    context.register_catalog(own, Arc::new(SinkCatalog { server }));
    Ok(())
}

/// The schemas of a server.
#[derive(Debug)]
struct SinkCatalog {
    server: Arc<dyn Server>,
}

impl CatalogProvider for SinkCatalog {
    fn schema_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        Some(Arc::new(SinkSchema { server: Arc::clone(&self.server), schema: Some(name.to_owned()) }))
    }
}

/// The tables of a schema, or those that the server finds without one.
#[derive(Clone, Debug)]
pub(crate) struct SinkSchema {
    server: Arc<dyn Server>,
    schema: Option<String>,
}

impl SinkSchema {
    pub(crate) fn database(&self) -> &'static Database {
        self.server.database()
    }

    /// A table to insert into, or to create.
    pub(crate) fn sink(&self, name: &str, mode: Mode) -> Result<Arc<dyn Sink>> {
        self.server.table(self.schema.as_deref(), name, mode)
    }
}

#[async_trait]
impl SchemaProvider for SinkSchema {
    /// Lists no tables.
    fn table_names(&self) -> Vec<String> {
        Vec::new()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let table = SinkTable::existing(self.sink(name, Mode::Append)?).await?;
        Ok(Some(Arc::new(table)))
    }

    fn table_exist(&self, _: &str) -> bool {
        true
    }
}
