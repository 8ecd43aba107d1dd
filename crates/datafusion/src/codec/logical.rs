//! Our tables in logical plans.

use std::sync::Arc;

use ballista_core::serde::BallistaLogicalExtensionCodec;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::TableReference;
use datafusion::datasource::TableProvider;
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, Extension, HigherOrderUDF, LogicalPlan, ScalarUDF, WindowUDF};
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use serde::{Deserialize, Serialize};

use crate::codec::{decoded, encode};
use crate::error::refused;
use crate::footers::table::{Definition as FooterDefinition, FooterTable};
use crate::generated::files::GeneratedFiles;
use crate::generated::table::{Definition as GeneratedDefinition, GeneratedTable};
use crate::parquet_files::table::{Definition as ParquetDefinition, ParquetTable};
use crate::sinks::loads::parts::PartedLoad;
use crate::sinks::table::SinkTable;
use crate::units::job::JobTable;

/// Encodes and decodes our tables, and leaves the others to Ballista.
#[derive(Debug, Default)]
pub struct SawmillLogicalCodec {
    others: BallistaLogicalExtensionCodec,
}

#[derive(Serialize, Deserialize)]
enum Table {
    Generated(GeneratedDefinition),
    Footers(FooterDefinition),
    Files(GeneratedFiles),
    Parquet(ParquetDefinition),
    Load(PartedLoad),
}

impl Table {
    fn find(provider: &dyn TableProvider) -> Option<Self> {
        if let Some(table) = provider.downcast_ref::<GeneratedTable>() {
            return Some(Self::Generated(table.definition().clone()));
        }
        if let Some(table) = provider.downcast_ref::<FooterTable>() {
            return Some(Self::Footers(table.definition().clone()));
        }
        if let Some(table) = provider.downcast_ref::<ParquetTable>() {
            return Some(Self::Parquet(table.definition().clone()));
        }
        if let Some(table) = provider.downcast_ref::<JobTable<PartedLoad>>() {
            return Some(Self::Load(table.0.clone()));
        }
        provider.downcast_ref::<JobTable<GeneratedFiles>>().map(|table| Self::Files(table.0.clone()))
    }

    fn open(self, schema: SchemaRef) -> Result<Arc<dyn TableProvider>> {
        match self {
            Self::Generated(definition) => Ok(Arc::new(GeneratedTable::open(definition)?)),
            Self::Footers(definition) => Ok(Arc::new(FooterTable::defined(definition))),
            Self::Files(files) => Ok(Arc::new(JobTable(files))),
            Self::Parquet(definition) => Ok(Arc::new(ParquetTable::defined(definition, schema))),
            Self::Load(load) => Ok(Arc::new(JobTable(load))),
        }
    }
}

impl LogicalExtensionCodec for SawmillLogicalCodec {
    fn try_decode(&self, buf: &[u8], inputs: &[LogicalPlan], ctx: &TaskContext) -> Result<Extension> {
        self.others.try_decode(buf, inputs, ctx)
    }

    fn try_encode(&self, node: &Extension, buf: &mut Vec<u8>) -> Result<()> {
        self.others.try_encode(node, buf)
    }

    fn try_decode_table_provider(
        &self,
        buf: &[u8],
        table: &TableReference,
        schema: SchemaRef,
        ctx: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        match decoded::<Table>(buf) {
            Some(table) => table?.open(schema),
            None => self.others.try_decode_table_provider(buf, table, schema, ctx),
        }
    }

    fn try_encode_table_provider(
        &self,
        table: &TableReference,
        node: Arc<dyn TableProvider>,
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        if node.is::<SinkTable>() {
            let advice = "plan the statement in the session that remote_session returns";
            return Err(refused("a scheduler does not know tables of databases", &table.to_string(), advice));
        }
        if let Some(table) = node.downcast_ref::<ParquetTable>() {
            table.refuse_for_executors()?;
        }
        match Table::find(node.as_ref()) {
            Some(ours) => encode(&ours, buf),
            None => self.others.try_encode_table_provider(table, node, buf),
        }
    }

    fn try_decode_file_format(&self, buf: &[u8], ctx: &TaskContext) -> Result<Arc<dyn FileFormatFactory>> {
        self.others.try_decode_file_format(buf, ctx)
    }

    fn try_encode_file_format(&self, buf: &mut Vec<u8>, node: Arc<dyn FileFormatFactory>) -> Result<()> {
        self.others.try_encode_file_format(buf, node)
    }

    functions_of_others! {
        try_decode_udf try_encode_udf ScalarUDF;
        try_decode_higher_order_function try_encode_higher_order_function HigherOrderUDF;
        try_decode_udaf try_encode_udaf AggregateUDF;
        try_decode_udwf try_encode_udwf WindowUDF;
    }
}
