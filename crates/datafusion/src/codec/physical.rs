//! Our operator in physical plans.

use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, WindowUDF};
use datafusion::physical_expr_common::physical_expr::PhysicalExpr;
use datafusion::physical_expr_common::physical_expr::proto_decode::PhysicalExprDecodeCtx;
use datafusion::physical_expr_common::physical_expr::proto_encode::PhysicalExprEncodeCtx;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

use crate::codec::{decoded, encode};
use crate::units::UnitsExec;
use crate::units::exec::Units;
use crate::units::work::WorkDescription;

/// Encodes and decodes our operator, and leaves the others to Ballista.
#[derive(Debug, Default)]
pub struct SawmillPhysicalCodec {
    others: BallistaPhysicalExtensionCodec,
}

impl PhysicalExtensionCodec for SawmillPhysicalCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(work) = decoded::<WorkDescription>(buf) else {
            return self.others.try_decode(buf, inputs, ctx, proto_converter);
        };
        match inputs {
            [units] => {
                Ok(Arc::new(UnitsExec::new(Units::of_another_process(work?.open()?), Arc::clone(units))))
            }
            _ => internal_err!("UnitsExec has one input, its units, found {}", inputs.len()),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match node.downcast_ref::<UnitsExec>() {
            Some(units) => encode(&units.operation().work().description(), buf),
            None => self.others.try_encode(node, buf, proto_converter),
        }
    }

    fn try_decode_expr(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn PhysicalExpr>],
        ctx: &PhysicalExprDecodeCtx<'_>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        self.others.try_decode_expr(buf, inputs, ctx)
    }

    fn try_encode_expr(
        &self,
        node: &Arc<dyn PhysicalExpr>,
        buf: &mut Vec<u8>,
        ctx: &PhysicalExprEncodeCtx<'_>,
    ) -> Result<()> {
        self.others.try_encode_expr(node, buf, ctx)
    }

    functions_of_others! {
        try_decode_udf try_encode_udf ScalarUDF;
        try_decode_higher_order_function try_encode_higher_order_function HigherOrderUDF;
        try_decode_udaf try_encode_udaf AggregateUDF;
        try_decode_udwf try_encode_udwf WindowUDF;
    }
}
