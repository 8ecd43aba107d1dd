//! Plans calls of our table functions.

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::datasource::{TableProvider, provider_as_source};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::sql::sqlparser::ast::{FunctionArg, FunctionArgExpr, TableFactor};

use crate::error::refused;
use crate::functions::arguments::Arguments;
use crate::{footers, generated, parquet_files};

/// Makes the table of a call.
type Function = fn(Arguments) -> Result<Arc<dyn TableProvider>>;

/// Our functions, by name.
const FUNCTIONS: &[(&str, Function)] = &[
    ("footer", footers::table::of_call),
    ("gen", generated::table::of_call),
    ("parquet", parquet_files::table::of_call),
];

/// Turns calls of [`FUNCTIONS`] in a FROM clause into scans of their tables.
#[derive(Debug)]
pub(crate) struct FunctionPlanner;

impl RelationPlanner for FunctionPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Table { name, alias, args: Some(call), .. } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let called = name.to_string().to_lowercase();
        let Some((function_name, function)) = FUNCTIONS.iter().find(|(name, _)| *name == called) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let mut given = Vec::with_capacity(call.args.len());
        for argument in &call.args {
            let (name, value) = match argument {
                FunctionArg::Unnamed(value) => (None, value),
                FunctionArg::Named { name, arg, .. } => (Some(name.value.to_lowercase()), arg),
                FunctionArg::ExprNamed { name, arg, .. } => (Some(name.to_string().to_lowercase()), arg),
            };
            let FunctionArgExpr::Expr(value) = value else {
                return Err(refused("an argument is not a literal", function_name, "write a number or text"));
            };
            let value = context.sql_expr_to_logical_expr(value.clone(), &DFSchema::empty())?;
            given.push((name, value));
        }
        let table = function(Arguments::new(function_name, given)?)?;
        let plan = LogicalPlanBuilder::scan(*function_name, provider_as_source(table), None)?.build()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}
